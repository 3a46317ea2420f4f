package layout

import (
	"image/color"
	"slices"
)

// Shade is a colour on white and on a dark ground.
type Shade struct{ Light, Dark color.RGBA }

// LayerShades are Okabe and Ito's colours, which stay apart under all common colour blindness, a grey, and lighter
// shades of three of them.
var LayerShades = []Shade{
	shade(0x0072b2, 0x3d9bdc), shade(0xe69f00, 0xf0b429), shade(0x009e73, 0x2fc495), shade(0xcc79a7, 0xe09cc2),
	shade(0x56b4e9, 0x7cc9f5), shade(0xd55e00, 0xf0803c), shade(0xf0e442, 0xd8cb3a), shade(0x6e6e6e, 0x9aa3ad),
	shade(0x99c7e0, 0xb5d8ec), shade(0xf5d899, 0xf7dfaa), shade(0x99d8c7, 0xa9e0d0), shade(0x3c3c3c, 0xd9dde2),
}

// RestShade is the colour of the sum of all names without a colour.
var RestShade = shade(0xb4bac2, 0x6b7480)

// Uncategorized is the name, on pages and in pictures, of memory that no rule matches.
const Uncategorized = "not categorized"

// CategoryColors are the indices in LayerShades of the purposes of memory.
var CategoryColors = map[string]int{"Parameters": 0, "Gradients": 1, "Optimizer state": 2, "Feature maps": 3,
	"Workspace": 4,
	"Temporary": 5, "Intermediate gradients": 6, Uncategorized: 7}

// PhaseColor is a phase of training, in a shade in which letters can be read.
type PhaseColor struct {
	Name string
	Shade
}

// PhaseShades are all of them.
var PhaseShades = []PhaseColor{
	{"init", shade(0xd6d6d6, 0x4a515c)}, {"forward", shade(0x99c7e0, 0x1f5a85)},
	{"recompute", shade(0xe5bcd3, 0x7a4a66)}, {"backward", shade(0xf5d899, 0x7a5a16)},
	{"optimizer", shade(0x99d8c7, 0x1d6b55)}, {"data", shade(0xf5eea0, 0x6b6420)},
}

// Colors gives each name an index in LayerShades: its own, if it has one, else the next one that no other name has.
func Colors(names []string) []int {
	taken := map[int]bool{}
	for _, name := range names {
		if n, own := CategoryColors[name]; own {
			taken[n] = true
		}
	}
	list, next := make([]int, len(names)), 0
	for i, name := range names {
		n, own := CategoryColors[name]
		if !own {
			for len(taken) < len(LayerShades) && taken[next%len(LayerShades)] {
				next++
			}
			n = next % len(LayerShades)
			taken[n] = true
			next++
		}
		list[i] = n
	}
	return list
}

// PhaseShade is the shade of a phase by its name.
func PhaseShade(name string) Shade {
	if i := slices.IndexFunc(PhaseShades, func(p PhaseColor) bool { return p.Name == name }); i >= 0 {
		return PhaseShades[i].Shade
	}
	return RestShade
}

func shade(light, dark uint32) Shade { return Shade{rgb(light), rgb(dark)} }

func rgb(hex uint32) color.RGBA {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 255}
}
