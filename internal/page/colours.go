package page

import (
	"fmt"
	"image/color"
	"strings"

	"memtrace/internal/render/layout"
)

// coloured inserts the palette's colours into the style sheet, for light and dark backgrounds.
func coloured(rules string) string {
	list := func(of func(layout.Shade) color.RGBA) string {
		var text strings.Builder
		add := func(name string, s layout.Shade) {
			c := of(s)
			fmt.Fprintf(&text, "--%s: #%02x%02x%02x; ", name, c.R, c.G, c.B)
		}
		for i, s := range layout.LayerShades {
			add(fmt.Sprintf("c%d", i), s)
		}
		add("rest", layout.RestShade)
		for _, p := range layout.PhaseShades {
			add("p-"+p.Name, p.Shade)
		}
		return strings.TrimSpace(text.String())
	}
	return strings.NewReplacer(
		"/* light colours */", list(func(s layout.Shade) color.RGBA { return s.Light }),
		"/* dark colours */", list(func(s layout.Shade) color.RGBA { return s.Dark }),
	).Replace(rules)
}
