//go:build e2e

package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/cli"
)

// sizeIn is the bytes that a text names.
func sizeIn(t *testing.T, text string, figure *regexp.Regexp) int64 {
	t.Helper()
	found := figure.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no %s:\n%s", figure, text)
	}
	return bytesIn(t, found[1]+found[2])
}

// bytesIn is a size as reports print it.
func bytesIn(t *testing.T, size string) int64 {
	t.Helper()
	bytes, err := cli.ParseSize(size)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// Segments that grow were said to avoid most of what was idle, where they gave 12 of 100 MiB.
//
// TestWaste: where much is reserved and unused, though memory does not run out, the first screen has the reason, and
// what it names gives back what it says.
func TestWaste(t *testing.T) {
	t.Parallel()
	extended(t)
	const grow = "expandable_segments:True"
	lowers := regexp.MustCompile(`reserved by about (\S+) ([MG])iB`)
	grows := []string{"PYTORCH_CUDA_ALLOC_CONF=" + grow}
	for _, c := range []struct {
		name, says string
		figure     *regexp.Regexp // what it gives back
		args, env  []string       // of the run that follows
	}{
		{"sizes", "in segments without any block: PYTORCH_CUDA_ALLOC_CONF=" + grow + " lowers", lowers, nil, grows},
		{"mixed", "in segments that hold blocks, too: PYTORCH_CUDA_ALLOC_CONF=" + grow + " lowers", lowers, nil, grows},
		{"between", "all of it in segments without any block.", nil, nil, nil},
		{"graphs", "private pools, as CUDA graphs have them: one pool for all captures",
			regexp.MustCompile(`gives back about (\S+) ([MG])iB`), []string{"--followed"}, nil},
		{"streams", "in segments without any block.", nil, nil, nil},
		{"even", "", nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reserves := func(r *result) int64 {
				bytes, err := strconv.ParseInt(strings.TrimSpace(r.stdout), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return bytes
			}
			p := program{framework: torch27, args: []string{"wasteful.py", c.name}}
			r := p.record(t)
			sentences := strings.Join(jsonReport(t, r.trace).Verdict.Sentences, "\n")
			if c.says == "" && strings.Contains(sentences, "unused") || !strings.Contains(sentences, c.says) {
				t.Fatalf("want %q:\n%s", c.says, sentences)
			}
			if c.figure == nil {
				return
			}
			p.args, p.env, p.plain = append(p.args, c.args...), c.env, true
			says := sizeIn(t, sentences, c.figure)
			gives := reserves(r) - reserves(p.record(t))
			if gives < says-says/10 || gives > says+says/10 {
				t.Errorf("it gives %d MiB, not %d:\n%s", gives>>20, says>>20, sentences)
			}
		})
	}
}
