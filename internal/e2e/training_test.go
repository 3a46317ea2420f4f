//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"memtrace/internal/guest"
)

// moment, iteration, parameter and training mirror what the tests read of a report's "training" (docs/report-json.md).
type moment struct {
	Phase string   `json:"phase"`
	Bytes uint64   `json:"bytes"`
	Held  []uint64 `json:"held"`
}

type iteration struct {
	Number            uint64   `json:"number"`
	Ended             bool     `json:"ended"`
	Peak              moment   `json:"peak"`
	Forward           *moment  `json:"forward"`
	Backward          *moment  `json:"backward"`
	Optimizer         *moment  `json:"optimizer"`
	Highest           []uint64 `json:"highest"`
	End               []uint64 `json:"end"`
	ReservedPeakBytes uint64   `json:"reserved_peak_bytes"`
	ReservedEndBytes  uint64   `json:"reserved_end_bytes"`
	AllocCount        uint64   `json:"alloc_count"`
	FreeCount         uint64   `json:"free_count"`

	Requested *requestedBytes `json:"requested_end"`
}

type parameter struct {
	Name       string `json:"name"`
	Category   string `json:"category"`
	Bytes      uint64 `json:"bytes"`
	BlockBytes uint64 `json:"block_bytes"`
	Gradient   uint64 `json:"gradient_bytes"`
	GradBlock  uint64 `json:"gradient_block_bytes"`
	States     []struct {
		Name       string `json:"name"`
		Bytes      uint64 `json:"bytes"`
		BlockBytes uint64 `json:"block_bytes"`
	} `json:"states"`
}

type moduleMoment struct {
	Moment  string   `json:"moment"`
	Own     []uint64 `json:"own"`
	Subtree []uint64 `json:"subtree"`
}

type module struct {
	Name     string         `json:"name"`
	Path     string         `json:"path"`
	Moments  []moduleMoment `json:"moments"`
	Children []module       `json:"children"`
}

type training struct {
	Level        string      `json:"level"`
	Categories   []string    `json:"categories"`
	IterationsBy string      `json:"iterations_by"`
	Iterated     string      `json:"iterated"`
	Iterations   []iteration `json:"iterations"`
	LeftOut      uint64      `json:"left_out"`
	Parameters   []parameter `json:"parameters"`
	Modules      *module     `json:"modules"`
	Highest      int         `json:"highest"`
}

// column returns the place of a category in a training's moments.
func (tr *training) column(t *testing.T, category string) int {
	t.Helper()
	at := slices.Index(tr.Categories, category)
	if at < 0 {
		t.Fatalf("no category %q among %q", category, tr.Categories)
	}
	return at
}

func addUp(list []uint64) (total uint64) {
	for _, v := range list {
		total += v
	}
	return total
}

// trainingOf returns what a report says of training.
func trainingOf(t *testing.T, trace string, args ...string) *training {
	t.Helper()
	var rep struct {
		Training *training `json:"training"`
	}
	if err := json.Unmarshal(
		[]byte(memtrace(t, append([]string{"report", "--json", "--view", "modules", trace}, args...)...)), &rep); err !=
		nil {
		t.Fatal(err)
	}
	if rep.Training == nil {
		t.Fatal("the report says nothing of training")
	}
	return rep.Training
}

// watchedBy returns the run of a training script by one of the oracles in Python, which writes to result.stats.
// Arguments are the script below testdata/train and its own.
func (p program) watchedBy(oracle string) program {
	script := filepath.Join(guest.Root(), "testdata", "train", p.args[0])
	p.args = append([]string{filepath.Join("..", "oracle", oracle), "STATS", script}, p.args[1:]...)
	return p
}

// oracleJSON reads what an oracle in Python wrote.
func oracleJSON[T any](t *testing.T, r *result) (value T) {
	t.Helper()
	text, err := os.ReadFile(r.stats)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", r.stats, err)
	}
	return value
}

// withPackages gives a program Hugging Face's libraries, and takes memtrace's package from it.
func (p program) withPackages(t *testing.T) program {
	t.Helper()
	p.env = append(slices.Clone(p.env), "PYTHONPATH="+p.packageFolder(t, "packages.txt"), "HF_HUB_OFFLINE=1",
		"USE_TF=0", "USE_FLAX=0")
	return p
}
