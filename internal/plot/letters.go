package plot

import (
	"unicode/utf8"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
)

// pngCanvas places letters itself. The face that vgimg uses kerns letters as if they were 32 pixels high, so that the
// letters of a small "Te" overlap.
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

// pdfCanvas writes texts in the one-byte code that vgpdf embeds its fonts with, Windows-1252, which vgpdf leaves to its
// caller.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString implements vg.Canvas.
func (c pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	c.Canvas.FillString(face, at, windows1252(text))
}

// windows1252 encodes a text; what the code has not becomes a question mark.
func windows1252(text string) string {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		switch code := outside1252[r]; {
		case code != 0:
			out = append(out, code)
		case r < 0x80 || r >= 0xa0 && r < 0x100:
			out = append(out, byte(r))
		default:
			out = append(out, '?')
		}
	}
	return string(out)
}

// outside1252 are characters of the code page at other positions in Unicode.
var outside1252 = map[rune]byte{'€': 0x80, '‚': 0x82, 'ƒ': 0x83, '„': 0x84, '…': 0x85, '†': 0x86, '‡': 0x87, 'ˆ': 0x88,
	'‰': 0x89, 'Š': 0x8a, '‹': 0x8b, 'Œ': 0x8c, 'Ž': 0x8e,
	'‘': 0x91, '’': 0x92, '“': 0x93, '”': 0x94, '•': 0x95, '–': 0x96, '—': 0x97, '˜': 0x98, '™': 0x99, 'š': 0x9a,
	'›': 0x9b, 'œ': 0x9c, 'ž': 0x9e, 'Ÿ': 0x9f}
