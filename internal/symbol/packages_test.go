package symbol

import (
	"os"
	"path/filepath"
	"testing"
)

// Packages are recognized by the metadata next to them, under the name of the distribution or that of the package;
// folders of the program are not.
func TestPackageFolders(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	for path, text := range map[string]string{
		"vendor/alpha/__init__.py":                 "",
		"vendor/alpha/models/__init__.py":          "",
		"vendor/alpha/models/net.py":               "",
		"vendor/Alpha-1.0.dist-info/METADATA":      "",
		"vendor/beta/__init__.py":                  "",
		"vendor/beta_kit-2.egg-info/top_level.txt": "gamma\nbeta\n",
		"vendor/mine/__init__.py":                  "",
		"app/__init__.py":                          "",
		"app/deep/er.py":                           "",
		"vendor/plain.py":                          "",
		"vendor/alphabet/__init__.py":              "",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var p PackageFolders
	vendor := filepath.Join(dir, "vendor")
	for file, want := range map[string]string{
		"vendor/alpha/models/net.py": vendor,
		"vendor/alpha/x.py":          vendor,
		"vendor/beta/x.py":           vendor,
		"vendor/mine/x.py":           "",
		"vendor/alphabet/x.py":       "",
		"vendor/plain.py":            "",
		"app/deep/er.py":             "",
		"absent/x.py":                "",
	} {
		for range 2 { // the second answer is remembered
			if got := p.Of(filepath.Join(dir, file)); got != want {
				t.Errorf("%s: %q, want %q", file, got, want)
			}
		}
	}
	if got := p.Of("relative/x.py"); got != "" {
		t.Errorf("a relative path: %q", got)
	}
}
