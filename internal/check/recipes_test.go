package check

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// With -update, the files are written into docs/ci.md.
var update = flag.Bool("update", false, "write the files into the documentation")

var (
	shown = regexp.MustCompile(`^<!-- (testdata/ci/\S+) -->$`) // before the block with the file's text
	fence = regexp.MustCompile("^`{3,}")
)

// TestRecipesAreShown: docs/ci.md shows the recipes, the sample's budget and patch and its summary, each as the file
// that is linted and run.
func TestRecipesAreShown(t *testing.T) {
	const page = "../../docs/ci.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen, lines, written := map[string]bool{}, strings.SplitAfter(string(text), "\n"), ""
	for i := 0; i < len(lines); i++ {
		written += lines[i]
		m := shown.FindStringSubmatch(strings.TrimSpace(lines[i]))
		if m == nil || i+1 == len(lines) {
			continue
		}
		file, err := os.ReadFile(filepath.Join("../..", m[1]))
		if err != nil {
			t.Fatal(err)
		}
		i++
		written += lines[i]
		ends, block := fence.FindString(lines[i]), ""
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != ends; i++ {
			block += lines[i]
		}
		if seen[m[1]] = true; block != string(file) && !*update {
			t.Errorf("%s shows another %s; go test ./internal/check -run TestRecipesAreShown -update writes it", page,
				m[1])
		}
		written += string(file) + ends + "\n"
	}
	for _, name := range []string{"github.yml", "github-base.yml", "gitlab-ci.yml", "Jenkinsfile",
		"sample/memtrace.toml", "pull-request.patch", "summary.md"} {
		if !seen["testdata/ci/"+name] {
			t.Errorf("%s does not show testdata/ci/%s", page, name)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
