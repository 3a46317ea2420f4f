package exportcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"memtrace/internal/cli"
	"memtrace/internal/safefile"
	"memtrace/internal/tables"
)

// A run has each rank once. Files of one run stand side by side, OUT/TABLE/run=RUN/ranks-A-B.parquet; those of the
// table runs tell which ranks the others of the same name have, so that a file of ranks that are written once more is
// replaced in all tables or in none.

// parquetFiles are the files that are written, and those of the same run that were there before.
type parquetFiles struct {
	paths   []string // in the order of the tables
	folders []string // that were made for them
	output  string
	run     string
	force   bool
	earlier []earlierFile
}

// earlierFile is a file of an earlier export of the run that has some of the ranks.
type earlierFile struct {
	name  string
	ranks []int32
}

// parquetFiles makes the folders of the tables and looks what the run has already. What it returns is never nil.
func (f *Flags) parquetFiles(list []tables.Table, ranks []rankFile) (*parquetFiles, error) {
	files := &parquetFiles{output: f.output, force: f.force}
	if f.parquet.table != "" {
		files.paths = []string{f.output}
		return files, nil
	}
	files.run = cmp.Or(f.parquet.run, begun(ranks))
	numbers := make([]int32, len(ranks))
	for i := range ranks {
		numbers[i] = ranks[i].number
	}
	first, last := numbers[0], numbers[len(numbers)-1]
	name := fmt.Sprintf("rank-%d", first)
	if last != first {
		name = fmt.Sprintf("ranks-%d-%d", first, last)
	}
	name += parquetExtension
	if err := makeFolder(f.output); err != nil {
		return files, err
	}
	for _, t := range list {
		folder := files.folder(t.Name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return files, fmt.Errorf("%s cannot be created: %w; name another folder with -o", folder,
				cli.WithoutPath(err))
		}
		files.folders = append(files.folders, folder)
		files.paths = append(files.paths, filepath.Join(folder, name))
	}
	if err := files.look(numbers); err != nil {
		return files, err
	}
	return files, files.check(numbers)
}

func (p *parquetFiles) folder(table string) string {
	return filepath.Join(p.output, table, "run="+p.run)
}

// clean removes the folders that stayed empty.
func (p *parquetFiles) clean() {
	if len(p.folders) == 0 {
		return
	}
	for _, folder := range append(p.folders, p.output) { // those that hold something stay
		_ = os.Remove(folder)
		_ = os.Remove(filepath.Dir(folder))
	}
}

// look finds the files that have some of these ranks, which are in ascending order.
func (p *parquetFiles) look(ranks []int32) error {
	folder := p.folder("runs")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list %s: %w", folder, cli.WithoutPath(err))
	}
	for _, entry := range entries {
		first, last, ours := ranksOfName(entry.Name())
		if !strings.HasSuffix(entry.Name(), parquetExtension) || strings.HasPrefix(entry.Name(), ".") ||
			ours && (last < ranks[0] || first > ranks[len(ranks)-1]) {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		has, err := ranksIn(path)
		if err != nil {
			return fmt.Errorf("%s: %w; remove it, or name another run with --run", path, err)
		}
		if slices.ContainsFunc(has, among(ranks)) {
			p.earlier = append(p.earlier, earlierFile{entry.Name(), has})
		}
	}
	return nil
}

// ranksOfName reads the lowest and the highest rank from the name of a file.
func ranksOfName(name string) (first, last int32, ok bool) {
	var rest string
	if n, _ := fmt.Sscanf(name, "ranks-%d-%d%s", &first, &last, &rest); n == 3 && rest == parquetExtension {
		return first, last, true
	}
	if n, _ := fmt.Sscanf(name, "rank-%d%s", &first, &rest); n == 2 && rest == parquetExtension {
		return first, first, true
	}
	return 0, 0, false
}

func ranksIn(path string) ([]int32, error) {
	file, err := safefile.Open(path)
	if err != nil {
		return nil, cli.WithoutPath(err)
	}
	defer file.Close()
	content, err := safefile.Content(file)
	if err != nil {
		return nil, cli.WithoutPath(err)
	}
	return tables.Ranks(content, content.Size())
}

// check refuses a second file of a rank, and the replacement of a file that has other ranks than these as well.
func (p *parquetFiles) check(ranks []int32) error {
	for _, f := range p.earlier {
		path := filepath.Join(p.folder("runs"), f.name)
		if !p.force && path == p.path("runs") {
			continue // WriteAll refuses it
		}
		if others := slices.DeleteFunc(slices.Clone(f.ranks), among(ranks)); len(others) > 0 {
			return fmt.Errorf("%s has rank %d as well, which is not among these traces; give those of all its ranks, "+
				"or name another run with --run", path, others[0])
		}
		if !p.force {
			return fmt.Errorf("%s has rank %d already; use -f to replace it, or name another run with --run", path,
				f.ranks[0])
		}
	}
	return nil
}

// among reports whether a rank is one of some, which are in ascending order.
func among(ranks []int32) func(rank int32) bool {
	return func(rank int32) bool {
		_, found := slices.BinarySearch(ranks, rank)
		return found
	}
}

// path is that of a table's file; "" if the table is not written.
func (p *parquetFiles) path(table string) string {
	for _, path := range p.paths {
		if filepath.Dir(path) == p.folder(table) {
			return path
		}
	}
	return ""
}

// removeReplaced removes the earlier files of the ranks that were written, in every table.
func (p *parquetFiles) removeReplaced() error {
	var problems []error
	for _, f := range p.earlier {
		for _, t := range tables.All {
			path := filepath.Join(p.folder(t.Name), f.name)
			if slices.Contains(p.paths, path) {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, fmt.Errorf("remove %s, which was replaced: %w", path, cli.WithoutPath(err)))
			}
			_ = os.Remove(filepath.Dir(path)) // if it is empty now
			_ = os.Remove(filepath.Dir(filepath.Dir(path)))
		}
	}
	return errors.Join(problems...)
}

// begun is the default name of a run: when its first rank began.
func begun(ranks []rankFile) string {
	for i := range ranks {
		if t, err := time.Parse(time.RFC3339Nano, ranks[i].process.Started); err == nil {
			return t.UTC().Format("20060102T150405Z")
		}
	}
	return "unknown"
}
