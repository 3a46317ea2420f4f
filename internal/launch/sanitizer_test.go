package launch

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that is built with the sanitizer as a shared library ended at once, since the recorder preceded it.
func TestSanitizerStartsAfterTheRecorder(t *testing.T) {
	dir := t.TempDir()
	plain, checked := filepath.Join(dir, "plain"), filepath.Join(dir, "checked")
	for path, flag := range map[string]string{plain: "-O1", checked: "-fsanitize=address"} {
		cmd := exec.Command("gcc", "-x", "c", flag, "-o", path, "-")
		cmd.Stdin = strings.NewReader("int main(void) { return 0; }\n")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, text)
		}
	}
	for _, c := range []struct {
		program, before, after string
	}{
		{checked, "", "verify_asan_link_order=0"},
		{checked, "detect_leaks=0", "detect_leaks=0:verify_asan_link_order=0"},
		{checked, "verify_asan_link_order=1", "verify_asan_link_order=1"},
		{plain, "", ""},
		{plain, "detect_leaks=0", "detect_leaks=0"},
		{filepath.Join(dir, "gone"), "", ""},
	} {
		env := []string{"A=b"}
		if c.before != "" {
			env = append(env, "ASAN_OPTIONS="+c.before)
		}
		if got := LookupVariable(AllowSanitizer(env, c.program), "ASAN_OPTIONS"); got != c.after {
			t.Errorf("%s with %q: %q, want %q", filepath.Base(c.program), c.before, got, c.after)
		}
	}
}
