package browser

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var measured = flag.String("measure", "",
	"folder of pages that are opened and measured; the name of each is its number of blocks")

// Figures for docs/measurements.md: see scripts/page-bench.sh.
func TestMeasure(t *testing.T) {
	if *measured == "" {
		t.Skip("prints figures with -measure")
	}
	pages, err := filepath.Glob(filepath.Join(*measured, "*.html"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%v, %d pages", err, len(pages))
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		out, err := exec.Command("node", "measure.mjs", modules(t), chromium, "file://"+page).CombinedOutput()
		if err != nil || strings.Contains(string(out), "error:") {
			t.Fatalf("%v\n%s", err, out)
		}
		fmt.Printf("%s blocks: %s", strings.TrimSuffix(filepath.Base(page), ".html"), out)
	}
}
