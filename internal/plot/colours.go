package plot

import (
	"fmt"
	"image/color"

	"memtrace/internal/render/layout"
)

// colours gives each name its colour; the layer of all others has one of its own.
func colours(names []string) []color.RGBA {
	list := make([]color.RGBA, len(names))
	for i, n := range layout.Colors(names) {
		list[i] = light(layout.LayerShades[n])
	}
	return list
}

func light(s layout.Shade) color.RGBA { return s.Light }

// moreName is the name of the layer or bar that joins the given number of others.
func moreName(count int) string { return fmt.Sprintf("%d more", count) }

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = name(list[i])
	}
	return names
}
