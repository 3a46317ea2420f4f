package main

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// heatPage is what a page of many ranks holds for its picture.
type heatPage struct {
	Names   []string
	Marks   map[int]string
	Missing []int
	Columns []string
	Kinds   []struct {
		Name string
		Unit uint64
	}
	planes [][]byte // two for each kind
}

// element returns the text of a script element.
func element(t *testing.T, text, id string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script type="[^"]*" id="` + id + `">(.*?)</script>`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the page has no %s", id)
	}
	return found[1]
}

func heatPageOf(t *testing.T, text string) (h heatPage) {
	t.Helper()
	if err := json.Unmarshal([]byte(element(t, text, "facts")), &h); err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(element(t, text, "columns"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if size := len(h.Names) * len(h.Columns); err != nil || len(raw) != 2*size*len(h.Kinds) {
		t.Fatalf("%d bytes of cells: %v", len(raw), err)
	} else {
		h.planes = slices.Collect(slices.Chunk(raw, size))
	}
	return h
}

// row is what a process held of a kind in each column.
func (h *heatPage) row(name, kind string) (list []uint64) {
	i := slices.Index(h.Names, name)
	for k := range h.Kinds {
		for c := range h.Columns {
			if at := i*len(h.Columns) + c; h.Kinds[k].Name == kind && i >= 0 {
				v := uint64(h.planes[2*k][at]) | uint64(h.planes[2*k+1][at])<<8
				list = append(list, (v-1)*h.Kinds[k].Unit)
			}
		}
	}
	return list
}

// TestPageOfAThousandRanks: the page of 1,000 ranks with 64 iterations and 8 categories is at most 1 MB, every rank is
// in its table with a link that leads to its profile, and the planted faults are in the picture.
func TestPageOfAThousandRanks(t *testing.T) {
	folder, cutPath := manyRanks(t, 64)
	_, errs := execute(t, []string{"html", folder})
	page, err := os.ReadFile(folder + ".html")
	if err != nil || len(page) > 1_000_000 {
		t.Fatalf("%d bytes: %v %s", len(page), err, errs)
	}
	t.Logf("%d bytes", len(page))
	text := html.UnescapeString(string(page))
	for _, want := range []string{"<h1>998 processes on 125 hosts, with peaks from ", "Rank 5 differs most.",
		"every activation 1.75 times as large: a larger batch.",
		"The memory of rank 412 grows by 1.00 MiB per iteration",
		"Of 1000 ranks, ranks 640, 901 are missing", "rank0003.4700.mtp.",
		"<li>" + cutPath + ": a profile that is cut: it has 300 of its "} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	links := regexp.MustCompile(`<a href="([^"]+)">rank (\d+)</a>`).FindAllStringSubmatch(text, -1)
	if len(links) != world-2 {
		t.Errorf("%d links", len(links))
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join(filepath.Dir(folder), link[1])); err != nil ||
			!strings.Contains(text, "<code>memtrace report "+link[1]+"</code>") {
			t.Errorf("rank %s: %v", link[2], err)
		}
	}
	h := heatPageOf(t, string(page))
	if len(h.Columns) != 64 || len(h.Kinds) != 9 || !slices.Equal(h.Missing, []int{missing, cut}) || len(h.Marks) != 3 {
		t.Fatalf("%d columns, %d kinds, missing %v, marks %v", len(h.Columns), len(h.Kinds), h.Missing, h.Marks)
	}
	wantPlanted(t, &h)
}

// wantPlanted looks for the faults: a larger batch is in every column, a leak grows from column to column, in its
// category only.
func wantPlanted(t *testing.T, h *heatPage) {
	t.Helper()
	usual, large := h.row("rank 7", "Feature maps"), h.row(fmt.Sprint("rank ", larger), "Feature maps")
	still, leaking := h.row("rank 410", "not categorized"), h.row(fmt.Sprint("rank ", leaks), "not categorized")
	for c := range h.Columns {
		if times := float64(large[c]) / float64(usual[c]); times < 1.74 || times > 1.77 {
			t.Errorf("column %d: rank %d has %.3f times the activations of its stage", c, larger, times)
		}
		if still[c] != gib || c > 0 && leaking[c] <= leaking[c-1] {
			t.Errorf("column %d: not categorized are %d and %d bytes", c, still[c], leaking[c])
		}
		if parameters := h.row(fmt.Sprint("rank ", leaks), "Parameters"); parameters[c] != 4*gib {
			t.Errorf("column %d: parameters of %d bytes", c, parameters[c])
		}
	}
	if leaking[63]-leaking[0] != 100<<20 {
		t.Errorf("it leaks %d bytes", leaking[63]-leaking[0])
	}
	for rank, why := range map[int]string{larger: "differs from rank ", leaks: "grows by 1.00 MiB per iteration",
		strays: "500.0 MiB on device 6"} {
		if i := slices.Index(h.Names, fmt.Sprint("rank ", rank)); !strings.Contains(h.Marks[i], why) {
			t.Errorf("rank %d: %q", rank, h.Marks[i])
		}
	}
}

// Of two files that are of different ranks of one run, the page is about the ranks; of two runs, about the difference.
func TestWhichPageOfTwo(t *testing.T) {
	for _, test := range []struct {
		job   string
		rank  int
		ranks bool
	}{{"1", 1, true}, {"2", 0, false}, {"2", 1, false}} {
		folder := t.TempDir()
		(&madeRank{rank: 0, world: 2, job: "1"}).write(t, folder)
		(&madeRank{rank: test.rank, world: 2, job: test.job}).write(t, folder)
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		_, errs := execute(t, append([]string{"html"}, files...))
		_, err = os.Stat(filepath.Join(folder, "ranks.html"))
		if isRanks := err == nil; isRanks != test.ranks || !isRanks && !strings.Contains(errs, "has no blocks") {
			t.Errorf("rank %d of job %s: %s", test.rank, test.job, errs)
		}
	}
}

// A profile of which the head can be read and the rest is damaged is named, and the others are compared, by report as
// well: its rank differs, so that the rest was needed, and nothing was shown.
func TestDamagedBodyOfOneRank(t *testing.T) {
	folder := t.TempDir()
	for rank := range 6 {
		r := madeRank{rank: rank, world: 6, job: "1"}
		if rank == 2 {
			r.batch = 3
		}
		r.write(t, folder)
	}
	path := filepath.Join(folder, "rank0002.1.mtp")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-20] ^= 0x55
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"report", folder}, {"html", "-o", "-", folder}} {
		out, errs := execute(t, args)
		if !strings.Contains(out, "5 processes") || !strings.Contains(out, "rank 2 is missing") ||
			!strings.Contains(errs, path+": the body of the profile: damaged") {
			t.Errorf("%s: %s", args, errs)
		}
	}
}

// TestPageOfRanksWithoutIterations: ranks without iterations are shown at their peaks, by category where it is known.
func TestPageOfRanksWithoutIterations(t *testing.T) {
	folder := t.TempDir()
	for rank := range 3 {
		r := madeRank{rank: rank, world: 3, job: "1"}
		s := r.summary()
		s.Training.IterationsBy = report.IterationsByNothing
		r.writeOf(t, folder, s)
	}
	out, errs := execute(t, []string{"html", "-o", "-", folder})
	h := heatPageOf(t, out)
	if len(h.Columns) != 1 || len(h.Kinds) != 5 || h.row("rank 1", "Optimizer state")[0] != 8*gib {
		t.Errorf("%v, %v: %s", h.Columns, h.Kinds, errs)
	}
}
