package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// Formats are the endings of files that Draw can write, without the dot.
var Formats = []string{"png", "svg", "pdf"}

const (
	pixel       = vg.Inch / 96
	width       = 1000 * pixel
	height      = 560 * pixel
	margin      = 14 * pixel
	legendWidth = 230 * pixel
	nameRunes   = 34 // longer names are cut in the middle
)

var (
	grey  = light(layout.LayerShades[7])
	ink   = color.RGBA{35, 35, 35, 255}
	faint = color.RGBA{228, 228, 228, 255}
	alarm = color.RGBA{190, 20, 20, 255}
)

func init() {
	// A PDF's bytes must not depend on when it was made, nor on the order of maps.
	fixed := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	fpdf.SetDefaultCreationDate(fixed)
	fpdf.SetDefaultModificationDate(fixed)
	fpdf.SetDefaultCatalogSort(true)
}

// Draw writes a chart in one of Formats.
func (c *Chart) Draw(w io.Writer, format string) error {
	high := vg.Length(height) + c.lanesHeight()
	switch n := len(c.Panels); {
	case n > 0:
		high = panelsTop
		for row := range c.panelRows() {
			high += c.panelHeight(row)
		}
	case c.Flame != nil:
		high = c.Flame.height()
	case c.Map != nil:
		high = c.Map.height()
	}
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "png":
		canvas = pngCanvas{vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, high), vgimg.UseDPI(96))}}
	case "svg":
		canvas = vgsvg.New(width, high)
	case "pdf":
		canvas = pdfCanvas{vgpdf.New(width, high)}
	default:
		return fmt.Errorf("no picture is called .%s: the output's name ends in .png, .svg or .pdf", format)
	}
	dc := draw.New(canvas)
	dc.FillPolygon(color.White, rectangle(dc.Min.X, dc.Min.Y, dc.Max.X, dc.Max.Y))
	c.drawAll(draw.Crop(dc, margin, -margin, margin, -margin))
	_, err := canvas.WriteTo(w)
	return err
}

func (c *Chart) drawAll(dc draw.Canvas) {
	dc.FillText(style(18, ink), vg.Point{X: dc.Min.X, Y: dc.Max.Y - 18*pixel}, clip(c.Title, 80))
	dc.FillText(style(12, grey), vg.Point{X: dc.Min.X, Y: dc.Max.Y - 38*pixel}, clip(c.Note, 150))
	body := draw.Crop(dc, 0, 0, 0, -52*pixel)
	switch {
	case len(c.Panels) > 0:
		c.drawPanels(body)
	case len(c.Stacks) > 0:
		c.drawStacks(body)
	case len(c.Sizes) > 0:
		c.drawSizes(body)
	case c.Flame != nil:
		c.Flame.draw(body)
	case c.Map != nil:
		c.Map.draw(body)
	default:
		c.drawSeries(body)
	}
}

func rectangle(x0, y0, x1, y1 vg.Length) []vg.Point {
	return []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
}

// style returns a text style of a size in pixels.
func style(size float64, c color.Color) draw.TextStyle {
	return draw.TextStyle{Color: c, Font: font.From(plot.DefaultFont, vg.Length(size)*pixel),
		Handler: plot.DefaultTextHandler}
}

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// clip sanitizes a text from a trace for drawing: one line, nothing invisible, shortened in the middle if it is long.
func clip(text string, most int) string {
	text = sanitize.Text(text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most/2]) + "…" + string(r[len(r)-(most-most/2-1):])
	}
	return text
}

// byteTicks puts ticks on round binary numbers.
type byteTicks struct{}

func (byteTicks) Ticks(low, high float64) []plot.Tick {
	step := 1.0
	for (high-low)/step > 8 {
		step *= 2
	}
	unit, name := 1.0, "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if math.Max(high, -low) < unit*1024 {
			break
		}
		unit, name = unit*1024, next
	}
	var ticks []plot.Tick
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		text := "0"
		if v != 0 {
			text = strconv.FormatFloat(v/unit, 'f', -1, 64) + " " + name
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: text})
	}
	return ticks
}

// numberTicks puts ticks on round decimal numbers; time is in nanoseconds.
type numberTicks struct{ time bool }

func (n numberTicks) Ticks(low, high float64) []plot.Tick {
	step := 1.0
	for i := 0; (high-low)/step > 10; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	unit, name := 1.0, ""
	if n.time {
		name = " ns"
		for _, u := range []struct {
			size float64
			name string
		}{{1e3, " µs"}, {1e6, " ms"}, {1e9, " s"}} {
			if high >= u.size {
				unit, name = u.size, u.name
			}
		}
	}
	var ticks []plot.Tick
	for i := 0; i < 12; i++ {
		if v := (math.Ceil(low/step) + float64(i)) * step; v <= high {
			ticks = append(ticks,
				plot.Tick{Value: v, Label: strings.TrimSpace(strconv.FormatFloat(v/unit, 'g', 6, 64) + name)})
		}
	}
	return ticks
}
