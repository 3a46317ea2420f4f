//go:build e2e

package e2e

import (
	"testing"

	"memtrace/analyzer/report"
)

// kinds are bytes by MemTracker's kinds of reference.
type kinds map[string]uint64

// trackerRow mirrors testdata/oracle/mem_tracker.py.
type trackerRow struct {
	End          kinds `json:"end"`
	Peak         kinds `json:"peak"`
	Forward      kinds `json:"forward"`
	AfterForward kinds `json:"after_forward"`
	Backward     kinds `json:"backward"`
	Modules      map[string]struct {
		Parameters uint64 `json:"parameters"`
		Buffers    uint64 `json:"buffers"`
		Elsewhere  uint64 `json:"elsewhere"` // of parameters that another module had first
	} `json:"modules"`
}

// seed is the block of the gradient of a loss, which `backward()` makes before it enters the backward pass: to
// MemTracker an activation, to memtrace a gradient.
const seed = 512

// TestMemTracker: category by category and module by module memtrace agrees with PyTorch's MemTracker, to the byte but
// for what docs/memtracker.md explains. Expandable segments let the allocator round to 512 bytes and no more, which is
// what MemTracker assumes.
func TestMemTracker(t *testing.T) {
	t.Parallel()
	extended(t)
	for framework, list := range map[string][]model{torch27: modelsOn("neumf", "lstm", "resnet50", "llama-lora"),
		torch215: modelsOn("gpt2", "llama-checkpointing", "llama-lora")} {
		for _, m := range list {
			t.Run(framework+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				rarely(t, m.name == "lstm" || m.name == "neumf" || framework != torch27 && m.name != "gpt2")
				p := m.program(t, framework)
				tracked := p.watchedBy("mem_tracker.py")
				tracked.plain = true
				rows := oracleJSON[[]trackerRow](t, tracked.record(t))
				p.env = append(p.env, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
				compareTracker(t, trainingOf(t, p.record(t).trace), rows, m.name == "bert" || m.name == "resnet50")
			})
		}
	}
}

// ledger is a moment's categories by name.
type ledger map[string]uint64

func ledgerOf(tr *report.Training, held []uint64) ledger {
	l := ledger{}
	for i, category := range tr.Categories {
		l[category] = held[i]
	}
	return l
}

func (l ledger) sum(categories ...string) (total uint64) {
	for _, c := range categories {
		total += l[c]
	}
	return total
}

// compareTracker compares every iteration. inOperators: peaks are inside of operators, where MemTracker does not look:
// sums with buffers of their own, convolutions with columns.
func compareTracker(t *testing.T, tr *report.Training, rows []trackerRow, inOperators bool) {
	t.Helper()
	if len(rows) < 3 || len(tr.Iterations) != len(rows)+1 {
		t.Fatalf("%d iterations, MemTracker saw %d", len(tr.Iterations), len(rows))
	}
	same := 0
	for i, row := range rows {
		it := tr.Iterations[i]
		compareEnds(t, ledgerOf(tr, it.End), row.End)
		if comparePeaks(t, ledgerOf(tr, it.Peak.Held), row.Peak, it.Peak.Phase) {
			same++
		}
	}
	t.Logf("%d of %d peaks are the same moment", same, len(rows))
	if same == 0 && !inOperators {
		t.Error("no peak is the same moment")
	}
	compareModules(t, tr, rows[tr.Highest])
}

// activations are what MemTracker calls everything that was made outside of the backward pass and of the optimizer.
var activations = []string{"Feature maps", "Recomputed feature maps", "Input data", "Others"}

// compareEnds compares what is left when an optimizer finished a step: no temporary memory, and nothing that could hide
// in another moment.
func compareEnds(t *testing.T, got ledger, want kinds) {
	t.Helper()
	equal(t, "end: parameters and buffers", got["Parameters"], want["Parameter"]+want["Buffer"])
	equal(t, "end: gradients", got["Gradients"], want["Gradient"])
	equal(t, "end: state of the optimizer", got["Optimizer state"], want["Optstate"])
	equal(t, "end: what forward left", got.sum(activations...), want["Activation"]+want["Other"])
	equal(t, "end: the rest", got.sum("Temporary", "Intermediate gradients"), want["Temp"])
}

// comparePeaks compares the highest moments, and reports whether they are the same one. MemTracker samples when an
// operator has ended: it misses what operators allocate and free inside, so that the true peak may be another moment,
// and higher. Itself it holds what operators are given, which may make its own account a little higher.
func comparePeaks(t *testing.T, got ledger, want kinds, phase string) bool {
	t.Helper()
	equal(t, "peak: parameters and buffers", got["Parameters"], want["Parameter"]+want["Buffer"])
	total := sumOf(got) - got["Workspace"]
	between(t, "peak: all but workspaces", total, want["Total"]*99/100, want["Total"]*105/100)
	if total < want["Total"] || total > want["Total"]+got["Temporary"] {
		return false
	}
	state, forward, backward := got["Optimizer state"], got.sum(activations...),
		got.sum("Gradients", "Intermediate gradients")
	if phase == "optimizer" {
		state += got["Temporary"] // MemTracker takes all that a step makes for state
	} else {
		forward += got["Temporary"]
	}
	more := total - want["Total"]
	equal(t, "peak: state of the optimizer", state, want["Optstate"])
	between(t, "peak: activations", forward, want["Activation"]+want["Other"]-seed, want["Activation"]+want["Other"]+
		more)
	between(t, "peak: gradients", backward, want["Gradient"]+want["Temp"], want["Gradient"]+want["Temp"]+seed)
	return true
}

func sumOf(l ledger) (total uint64) {
	for _, bytes := range l {
		total += bytes
	}
	return total
}

func between(t *testing.T, what string, got, low, high uint64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %d bytes, MemTracker's account allows %d to %d", what, got, low, high)
	}
}

// compareModules compares the parameters and buffers of every module with all that are in it.
func compareModules(t *testing.T, tr *report.Training, row trackerRow) {
	t.Helper()
	parameters, got := column(t, tr, "Parameters"), map[string]uint64{}
	var walk func(m *report.Module)
	walk = func(m *report.Module) {
		for _, at := range m.Moments {
			if at.Moment == "peak" {
				got[m.Path] = at.Subtree[parameters]
			}
		}
		for i := range m.Children {
			walk(&m.Children[i])
		}
	}
	if tr.Modules == nil || len(row.Modules) < 4 {
		t.Fatalf("no modules, or MemTracker saw no more than %d", len(row.Modules))
	}
	walk(tr.Modules)
	for path, want := range row.Modules {
		ours := "model"
		if path != "" {
			ours += "." + path
		}
		equal(t, "parameters and buffers of "+ours, got[ours], want.Parameters+want.Buffers-want.Elsewhere)
	}
}
