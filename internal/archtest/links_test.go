package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	dropped = regexp.MustCompile(`[^\pL\pN _-]`)
)

// anchors are the names under which a document's headings are linked to.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		names[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return names
}

// TestLinks: links between documents lead to files and headings that exist.
func TestLinks(t *testing.T) {
	root := "../.."
	list, err := exec.Command("git", "-C", root, "ls-files", "*.md").Output()
	if err != nil {
		t.Skip("no git:", err)
	}
	seen := 0
	for _, name := range strings.Fields(string(list)) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted, not committed
		}
		for _, m := range mdLink.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			seen++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(root, name)
			if path != "" {
				target = filepath.Join(root, filepath.Dir(name), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s is not there", name, m[1])
				continue
			}
			if content, err := os.ReadFile(target); anchor != "" && (err != nil || !anchors(string(content))[anchor]) {
				t.Errorf("%s: %s has no heading %q", name, m[1], anchor)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d links in all documents", seen)
	}
}
