package plot

import (
	"unicode/utf8"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// pngCanvas places letters itself. The face that vgimg draws with moves letters towards each other as if they were 32
// pixels high, so that in a small "Te" one lies upon the other.
type pngCanvas struct{ vgimg.PngCanvas }

// FillString implements vg.Canvas.
func (c pngCanvas) FillString(face font.Face, at vg.Point, text string) {
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			end = min(i+1, len(text))
		}
		letter := text[i:end]
		c.PngCanvas.FillString(face, vg.Point{X: at.X + face.Width(text[:end]) - face.Width(letter), Y: at.Y}, letter)
	}
}
