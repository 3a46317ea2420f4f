//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Sections in which a figure may be another one from run to run; the script compares each with its own run's report.
// nvidia-smi's log has a sample every 10 ms, which may miss the highest moment.
var varies = map[string]func(name string, got, want uint64) bool{
	"As nvidia-smi sees it": func(_ string, got, want uint64) bool {
		return got > 0 && got <= want
	},
}

var (
	galleryPicture = regexp.MustCompile(`\]\((gallery/[\w-]+\.png)\)`)
	galleryNumber  = regexp.MustCompile(`(?m)^\| (.+) \| ([\d,]+) \|$`)
)

// TestGallery regenerates docs/gallery.md, from runs of the programs that it shows: the script fails where values of a
// picture are not those of the report, and the page must be the one in docs, picture by picture and byte by byte of its
// tables.
func TestGallery(t *testing.T) {
	t.Parallel()
	extended(t)
	dir := t.TempDir()
	cmd := exec.Command("scripts/gallery.sh", dir)
	cmd.Dir = root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := gallery(t, dir), gallery(t, filepath.Join(root(), "docs"))
	if len(got) != len(want) {
		t.Fatalf("%d sections, want %d", len(got), len(want))
	}
	for i, section := range want {
		compareSection(t, got[i], section)
		for _, name := range galleryPicture.FindAllStringSubmatch(section, -1) {
			for _, docs := range []string{dir, filepath.Join(root(), "docs")} {
				if info, err := os.Stat(filepath.Join(docs, name[1])); err != nil || info.Size() < 5000 {
					t.Errorf("%s: %v", name[1], err)
				}
			}
		}
	}
}

// gallery returns the sections of a gallery.
func gallery(t *testing.T, docs string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "gallery.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n## ")
}

// compareSection: everything is the same, but for figures that may vary.
func compareSection(t *testing.T, got, want string) {
	t.Helper()
	may := func(_ string, got, want uint64) bool { return got == want }
	for heading, vary := range varies {
		if strings.HasPrefix(want, heading) {
			may = vary
		}
	}
	same := galleryNumber.ReplaceAllString(got, "| $1 |") == galleryNumber.ReplaceAllString(want, "| $1 |")
	reported := galleryNumber.FindAllStringSubmatch(want, -1)
	for i, row := range galleryNumber.FindAllStringSubmatch(got, -1) {
		same = same && i < len(reported) && may(row[1], galleryBytes(t, row[2]), galleryBytes(t, reported[i][2]))
	}
	if !same {
		t.Errorf("the runs give\n%s\nand docs/gallery.md has\n%s", got, want)
	}
}

func galleryBytes(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
