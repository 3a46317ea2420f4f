//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

type holder struct {
	Path       string `json:"path"`
	Types      string `json:"types"`
	Tensors    int    `json:"tensors"`
	Bytes      uint64 `json:"bytes"`
	Hidden     uint64 `json:"hidden_bytes"`
	Device     string `json:"device"`
	GraphNodes int    `json:"graph_nodes"`
	GraphBytes uint64 `json:"graph_bytes"`
	Sites      []site `json:"sites"` // from outside only
}

type site struct {
	Site     string `json:"site"`
	Storages int    `json:"storages"`
}

// wantHolders checks that every way in which testdata/train/referrers.py keeps a tensor is listed, with its bytes.
func wantHolders(t *testing.T, found []holder, graphBytes bool) {
	t.Helper()
	const mebi = 1 << 20
	want := []holder{
		{Path: "__main__.server.cache['answers'][*]", Tensors: 50, Bytes: 50 * mebi},
		{Path: "__main__.history[*]", Tensors: 20, Bytes: 40 * mebi},
		{Path: "__main__.slotted.held[*]", Tensors: 1, Bytes: 7 * mebi},
		{Path: "__main__.closure.<locals>.<lambda> (closure: kept)", Tensors: 1, Bytes: 5 * mebi},
		{Path: "__main__.last (traceback) in fail (referrers.py:43), variable big", Tensors: 1, Bytes: 6 * mebi},
		{Path: "__main__.trained.grad", Tensors: 1, Bytes: 3 * mebi}, // nothing of Python's refers to it
		{Path: "__main__.staged[*]", Tensors: 4, Bytes: 8 * mebi, Device: "cpu"},
		{Path: "__main__.columns[*]", Tensors: 2, Bytes: 8 * mebi, Hidden: 8*mebi - 2*64*1024},
		{Path: "__main__.losses[*]", Tensors: 3, GraphNodes: 52, GraphBytes: 24 * mebi},
	}
	for _, w := range want {
		n := 0
		for _, h := range found {
			if h.Path != w.Path {
				continue
			}
			n++
			if w.GraphNodes > 0 {
				h.Bytes = 0
			}
			if !graphBytes {
				w.GraphBytes = 0
			}
			h.Types, h.Sites = "", nil
			if w.Device == "" {
				w.Device = "cuda:0"
			}
			if !reflect.DeepEqual(h, w) {
				t.Errorf("found %+v, want %+v", h, w)
			}
		}
		if n != 1 {
			t.Errorf("%q is there %d times in %+v", w.Path, n, found)
		}
	}
}

// What refers to a tensor is named, with and without a recording, and nothing is kept alive by it.
func TestReferrers(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(framework, " plain ", plain), func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && plain)
				r := program{framework: framework, args: []string{"referrers.py", "list"}, plain: plain}.record(t)
				var said struct {
					Holders   []holder `json:"holders"`
					Few       int      `json:"few"`
					Released  bool     `json:"released"`
					Allocated int64    `json:"allocated"`
				}
				if err := json.Unmarshal([]byte(r.stdout), &said); err != nil {
					t.Fatalf("%v\n%s", err, r.stdout)
				}
				wantHolders(t, said.Holders, framework == torch215)
				if said.Few != 2 || !said.Released || said.Allocated != -7<<20 {
					t.Errorf("%+v", said)
				}
				if !strings.Contains(r.stdout, "in <module> (referrers.py:") &&
					!strings.Contains(r.stdout, "__main__.local") {
					t.Errorf("a variable of the running module is not named:\n%s", r.stdout)
				}
			})
		}
	}
}
