package page

import (
	"fmt"
	"image/color"
	"strings"

	"memtrace/analyzer/palette"
)

// coloured inserts the palette's colours into the style sheet, for light and dark backgrounds.
func coloured(rules string) string {
	list := func(of func(palette.Shade) color.RGBA) string {
		var text strings.Builder
		add := func(name string, s palette.Shade) {
			c := of(s)
			fmt.Fprintf(&text, "--%s: #%02x%02x%02x; ", name, c.R, c.G, c.B)
		}
		for i, s := range palette.Layers {
			add(fmt.Sprintf("c%d", i), s)
		}
		add("rest", palette.Rest)
		for _, p := range palette.Phases {
			add("p-"+p.Name, p.Shade)
		}
		return strings.TrimSpace(text.String())
	}
	return strings.NewReplacer(
		"/* light colours */", list(func(s palette.Shade) color.RGBA { return s.Light }),
		"/* dark colours */", list(func(s palette.Shade) color.RGBA { return s.Dark }),
	).Replace(rules)
}
