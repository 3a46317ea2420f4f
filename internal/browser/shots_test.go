package browser

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"codeberg.org/go-fonts/liberation/liberationmonobold"
	"codeberg.org/go-fonts/liberation/liberationmonoregular"
	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
)

// Pictures of the upper parts of pages, at three widths in light and dark, are kept a quarter as large: letters become
// grey, so that how a browser's version smooths them does not count, and where they are does. The browser has no fonts
// but those of this test.
const (
	shotsFolder = "testdata/shots"
	shrink      = 4
	sameColour  = 40   // of 255, in each channel
	shotPart    = 0.02 // of the pixels may differ more
)

const fontsConf = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>%[1]s</dir>
<cachedir>%[1]s/cache</cachedir>
<match target="pattern"><test qual="all" name="family" compare="not_contains"><string>mono</string></test><edit name="family" mode="assign" binding="strong"><string>Liberation Sans</string></edit></match>
<match target="pattern"><test name="family" compare="contains"><string>mono</string></test><edit name="family" mode="assign" binding="strong"><string>Liberation Mono</string></edit></match>
</fontconfig>
`

// ownFonts puts fonts that are the same on every machine into a folder, and returns the configuration that names only
// these.
func ownFonts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, text := range map[string][]byte{"sans.ttf": liberationsansregular.TTF,
		"sans-bold.ttf": liberationsansbold.TTF, "mono.ttf": liberationmonoregular.TTF,
		"mono-bold.ttf": liberationmonobold.TTF} {
		write(name, text)
	}
	return write("fonts.conf", fmt.Appendf(nil, fontsConf, dir))
}

// compareShots compares each picture of a folder with the one that is kept.
func compareShots(t *testing.T, folder string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(paths) == 0 {
		t.Errorf("the browser took no pictures: %v", err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		got := shrunk(decode(t, path))
		if *update {
			keep(t, filepath.Join(shotsFolder, name), got)
			continue
		}
		if part := differing(got, decode(t, filepath.Join(shotsFolder, name))); part > shotPart {
			t.Errorf(
				"%s: %.1f%% of the picture differs from %s; -shots FOLDER keeps what it looks like now, -update takes it over", name, 100*part, filepath.Join(shotsFolder, name))
		}
	}
	if kept, err := filepath.Glob(filepath.Join(shotsFolder, "*.png")); err != nil || !*update &&
		len(kept) != len(paths) {
		t.Errorf("%d pictures, %d are kept: %v", len(paths), len(kept), err)
	}
}

func decode(t *testing.T, path string) image.Image {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return picture
}

func keep(t *testing.T, path string, picture image.Image) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err = encoder.Encode(file, picture); err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// shrunk is a picture in which each pixel is the mean of shrink by shrink, in steps of eight, which are few enough to
// compress.
func shrunk(picture image.Image) *image.RGBA {
	box := picture.Bounds()
	source := image.NewRGBA(box)
	draw.Draw(source, box, picture, box.Min, draw.Src)
	small := image.NewRGBA(image.Rect(0, 0, box.Dx()/shrink, box.Dy()/shrink))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			var sum [3]int
			for i := range shrink * shrink {
				c := source.RGBAAt(box.Min.X+x*shrink+i%shrink, box.Min.Y+y*shrink+i/shrink)
				sum[0], sum[1], sum[2] = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B)
			}
			mean := func(n int) uint8 { return uint8(min((n/(shrink*shrink)+4)&^7, 255)) }
			small.SetRGBA(x, y, color.RGBA{mean(sum[0]), mean(sum[1]), mean(sum[2]), 255})
		}
	}
	return small
}

// differing is which part of two pictures is not the same; what only one of them has differs.
func differing(a, b image.Image) float64 {
	all, both := a.Bounds().Union(b.Bounds()), a.Bounds().Intersect(b.Bounds())
	count := all.Dx()*all.Dy() - both.Dx()*both.Dy()
	near := func(a, b uint32) bool { return max(a>>8, b>>8)-min(a>>8, b>>8) <= sameColour }
	for y := both.Min.Y; y < both.Max.Y; y++ {
		for x := both.Min.X; x < both.Max.X; x++ {
			r, g, bl, _ := a.At(x, y).RGBA()
			r2, g2, bl2, _ := b.At(x, y).RGBA()
			if !near(r, r2) || !near(g, g2) || !near(bl, bl2) {
				count++
			}
		}
	}
	return float64(count) / float64(max(all.Dx()*all.Dy(), 1))
}

// TestShotsDistinguishPages: the comparison's tolerance is far below the difference of any two of the kept pictures of
// one width, a page that is shifted by a line of text, or one without its picture.
func TestShotsDistinguishPages(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(shotsFolder, "*.png"))
	if err != nil || len(paths) != 18 {
		t.Fatalf("%d pictures: %v", len(paths), err)
	}
	for i, path := range paths {
		one := decode(t, path)
		for _, other := range paths[i+1:] {
			if two := decode(t, other); two.Bounds() == one.Bounds() && differing(one, two) < 2*shotPart {
				t.Errorf("%s and %s differ in %.1f%%", path, other, 100*differing(one, two))
			}
		}
		box := one.Bounds()
		shifted, blank := image.NewRGBA(box), image.NewRGBA(box)
		draw.Draw(shifted, box, one, image.Pt(0, -22/shrink), draw.Src)
		draw.Draw(blank, box, one, box.Min, draw.Src)
		draw.Draw(blank, image.Rect(0, 400/shrink, box.Max.X, 800/shrink), image.NewUniform(one.At(0, 0)),
			image.Point{}, draw.Src)
		if differing(one, shifted) < shotPart || differing(one, blank) < shotPart {
			t.Errorf("%s: shifted it differs in %.1f%%, without its picture in %.1f%%", path,
				100*differing(one, shifted), 100*differing(one, blank))
		}
	}
}
