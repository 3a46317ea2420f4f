package plot

import "image/color"

// ownColours are places in the palette of what memory is for, so that it has one colour in all pictures.
var ownColours = map[string]int{"Parameters": 0, "Gradients": 1, "Optimizer state": 2, "Feature maps": 3,
	"Workspace": 4, "Temporary": 5, "Intermediate gradients": 6, "Others": 7}

// colours gives each name a colour: its own, if it has one, else the next one that no other name has.
func colours(names []string) []color.RGBA {
	taken := map[int]bool{}
	for _, name := range names {
		if n, own := ownColours[name]; own {
			taken[n] = true
		}
	}
	list, next := make([]color.RGBA, len(names)), 0
	for i, name := range names {
		n, own := ownColours[name]
		if !own {
			for len(taken) < len(palette) && taken[next%len(palette)] {
				next++
			}
			n = next % len(palette)
			taken[n] = true
			next++
		}
		list[i] = palette[n]
	}
	return list
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = name(list[i])
	}
	return names
}
