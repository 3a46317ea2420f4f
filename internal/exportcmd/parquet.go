package exportcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/sanitize"
	"memtrace/internal/tables"
	"memtrace/internal/tracefile"
	"memtrace/internal/version"
)

// ParquetName is the format that takes several traces: a folder for each table, with a file of their rows.
const ParquetName = "parquet"

// parquetExtension is the ending of each of its files.
const parquetExtension = ".parquet"

// ParquetTables lists the tables, for the help text.
func ParquetTables() string {
	var list strings.Builder
	for _, t := range tables.All {
		fmt.Fprintf(&list, "  %-16s  %s\n", t.Name, t.Doc)
	}
	return list.String()
}

// parquetFlags are those of this format alone.
type parquetFlags struct {
	events bool
	table  string
	run    string
}

var parquetOnly = []string{"events", "table", "run"}

func (p *parquetFlags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&p.events, "events", false, "parquet: also write every block and every event")
	f.StringVar(&p.table, "table", "", "parquet: write only this `TABLE`, to -o - or to the file that -o names")
	f.StringVar(&p.run, "run", "", "parquet: the `NAME` of the run (default: when its first rank began)")
	var names []string
	for _, t := range tables.All {
		names = append(names, t.Name)
	}
	cli.CompleteFlag(cmd, "table", cli.CompleteValues(names...))
	cli.CompleteFlag(cmd, "run", cli.CompleteValues())
	cli.GroupFlags(cmd, cli.GroupWhat, "events", "table", "run")
}

// runName is what may stand in the name of a folder that engines take a column from.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkParquet returns the tables to write.
func (f *Flags) checkParquet() ([]tables.Table, error) {
	for _, flag := range []string{"value", "level", "at", "from", "to", "limit", "no-lines"} {
		if f.changed(flag) {
			return nil, cli.UsageErrorf("--%s does not apply to %s, which has tables; leave it out", flag, ParquetName)
		}
	}
	p := &f.parquet
	switch {
	case f.push.enabled():
		return nil, cli.UsageErrorf("--push sends pprof's profile; leave out %s", ParquetName)
	case f.output == "":
		return nil, cli.UsageErrorf("%s writes a folder with the tables of all traces: name it with -o", ParquetName)
	case f.output == "-" && p.table == "":
		return nil, cli.UsageErrorf("-o - takes one table: name it with --table")
	case p.table != "" && (p.events || f.changed("run")):
		return nil, cli.UsageErrorf("--table writes one file: leave out --events and --run")
	case f.changed("run") && p.run == "":
		return nil, cli.UsageErrorf("--run is empty: name the run, or leave it out")
	case p.run != "" && !runName.MatchString(p.run):
		return nil, cli.UsageErrorf("--run %s: letters, digits, '.', '_' and '-' are allowed, in front a letter or a digit",
			p.run)
	}
	if p.table != "" {
		t := tables.Find(p.table)
		if t == nil {
			return nil, cli.UsageErrorf("--table %s: choose from\n%s", p.table, ParquetTables())
		}
		return []tables.Table{*t}, nil
	}
	return slices.DeleteFunc(slices.Clone(tables.All), func(t tables.Table) bool { return t.Detail && !p.events }), nil
}

// rankFile is the trace of a rank.
type rankFile struct {
	tracefile.Input
	process report.Process
	number  int32
}

// Parquet writes the tables of traces. A trace that cannot be read does not prevent the others from being written.
func (e *Exporter) Parquet(flags *Flags, args []string) error {
	list, err := flags.checkParquet()
	if err != nil {
		return err
	}
	count, _, err := flags.check()
	if err != nil {
		return err
	}
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	count.RuleSets, count.Training = []profile.RuleGrouping{{Name: cli.ByCategory, Rules: set}}, true
	inputs, err := tracefile.Expand(args)
	if err != nil {
		return err
	}
	ranks, problems := e.findRanks(inputs)
	if err := numberRanks(ranks); err != nil {
		return errors.Join(append(problems, err)...)
	}
	switch {
	case len(ranks) == 0 && len(problems) > 0:
		return errors.Join(problems...)
	case len(ranks) == 0:
		return tracefile.NoTraceError(args[0])
	}
	written := &parquetWritten{Exporter: e, count: count}
	files, err := flags.parquetFiles(list, ranks)
	if err == nil {
		err = e.WriteAll(files.paths, flags.force, sanitize.Bytes, func(outs []io.Writer) error {
			if err := written.write(tables.NewWriter(version.String, list, outs), ranks); err != nil {
				return err
			}
			return files.check(written.ranks) // a trace may not have been readable
		})
	}
	if problems = append(problems, written.problems...); err != nil {
		files.clean()
		if !errors.Is(err, errNoRank) {
			problems = append(problems, err)
		}
		return errors.Join(problems...)
	}
	if err := files.removeReplaced(); err != nil {
		problems = append(problems, err)
	}
	written.say(flags, len(list))
	return errors.Join(problems...)
}

// findRanks reads the beginning of every trace, for whose rank it is. A process counts once.
func (e *Exporter) findRanks(inputs []tracefile.Input) (ranks []rankFile, problems []error) {
	var seen report.Recordings
	for _, in := range inputs {
		run, err := tracefile.Open(e.Console, in.Path)
		if tracefile.PassOver(e.Console, in, err) {
			continue
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		_, err = run.ReadBatch() // a program is described before its first event
		process := report.ProcessOf(run.Info())
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			problems = append(problems, tracefile.ReadError(in.Path, run, err))
		case tracefile.Again(e.Console, &seen, in.Path, &process):
		default:
			ranks = append(ranks, rankFile{Input: in, process: process})
		}
		run.Close()
	}
	return ranks, problems
}

// numberRanks sorts the traces by their ranks, and gives numbers behind the highest to those without, in their order.
func numberRanks(ranks []rankFile) error {
	slices.SortStableFunc(ranks, func(a, b rankFile) int {
		switch {
		case a.process.Rank != nil && b.process.Rank != nil:
			return cmp.Compare(*a.process.Rank, *b.process.Rank)
		case a.process.Rank != nil:
			return -1
		case b.process.Rank != nil:
			return 1
		}
		return 0
	})
	next := int32(0)
	for i := range ranks {
		r := &ranks[i]
		if r.number = next; r.process.Rank != nil {
			r.number = int32(*r.process.Rank)
		}
		if i > 0 && r.number == ranks[i-1].number {
			return fmt.Errorf("%s and %s are both of rank %d; name the traces of one run", ranks[i-1].Path, r.Path,
				r.number)
		}
		next = r.number + 1
	}
	return nil
}

// errNoRank keeps files from being made when no trace could be read.
var errNoRank = errors.New("no rank to write")

// parquetWritten is what came of the traces.
type parquetWritten struct {
	*Exporter
	count    analyzer.Options
	problems []error
	ranks    []int32
	broken   int // of them, whose traces are not whole
}

func (p *parquetWritten) write(w *tables.Writer, ranks []rankFile) error {
	for i := range ranks {
		rank, err := p.read(&ranks[i])
		if err != nil {
			p.problems = append(p.problems, err)
			continue
		}
		if err := w.Add(rank); err != nil {
			return err
		}
		if w.Detailed() {
			if err := p.follow(w, rank, ranks[i].Path); err != nil {
				return err
			}
		}
		if p.ranks = append(p.ranks, ranks[i].number); !rank.Complete() {
			p.broken++
		}
	}
	if len(p.ranks) == 0 {
		return errNoRank
	}
	return w.Close()
}

// replayed replays a trace and hands what it leaves to ask.
func (p *parquetWritten) replayed(file *rankFile, count analyzer.Options, ask func(*analyzer.Profile) error) error {
	run, err := tracefile.Open(p.Console, file.Path)
	if err != nil {
		return err
	}
	defer run.Close()
	done, err := tracefile.LookAhead(file.Path, &count)
	if err != nil {
		return err
	}
	defer done()
	bar := p.NewProgress(file.Path, run.Size())
	defer bar.Finish()
	count.Progress = func(read int64) { bar.Update(read) }
	replayed, err := analyzer.Replay(run, count)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	defer replayed.Close()
	if err := ask(replayed); err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	return nil
}

// read replays a trace for everything but its blocks and events, and again for each moment of the program's own.
func (p *parquetWritten) read(file *rankFile) (rank *tables.Rank, err error) {
	var moments []string
	err = p.replayed(file, p.count, func(replayed *analyzer.Profile) error {
		s, err := replayed.Report(analyzer.Question{Groupings: []string{"tag"}})
		if err != nil {
			return err
		}
		sets, err := stackSets(replayed, p.count.Question)
		rank, moments = tables.NewRank(file.number, filepath.Base(file.Path), s, sets), s.NamedMoments()
		return err
	})
	for _, name := range moments {
		if err != nil {
			break
		}
		count := p.count
		if count.At, err = moment.Parse(name); err != nil {
			return nil, err
		}
		err = p.replayed(file, count, func(replayed *analyzer.Profile) error {
			sets, err := stackSets(replayed, count.Question)
			rank.AddMoment(name, sets)
			return err
		})
	}
	return rank, err
}

// stackSets are what the levels held at the moment of a question, or at their peaks and at the end, for the tables.
func stackSets(replayed *analyzer.Profile, of analyzer.Question) (sets []*analyzer.StackSet, err error) {
	q := analyzer.Question{Groupings: tables.Labels(cli.ByCategory), FullStacks: of.FullStacks, At: of.At}
	for _, level := range []string{report.LevelFramework, report.LevelDriver} {
		set, err := replayed.Stacks(q, level)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// follow replays a trace once more, for its blocks and events.
func (p *parquetWritten) follow(w *tables.Writer, rank *tables.Rank, path string) error {
	run, err := tracefile.OpenAgain(path)
	if err != nil {
		return err
	}
	defer run.Close()
	count := p.count
	count.Training, count.RuleSets, count.Groupings = false, nil, []string{"tag"}
	done, err := tracefile.LookAhead(path, &count)
	if err != nil {
		return err
	}
	defer done()
	detail := w.Detail(rank, run)
	followed, err := analyzer.Follow(run, count, detail)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer followed.Close()
	return detail.End(followed)
}

// say prints what was written.
func (p *parquetWritten) say(flags *Flags, count int) {
	if p.broken > 0 {
		p.Log.Warn().Msgf("%s not whole: see the columns complete and lost_records of the table runs",
			report.Count(uint64(p.broken), "trace is", "traces are"))
	}
	if flags.output == "-" || p.Quiet {
		return
	}
	p.Say("wrote %s, %s of %s", flags.output, report.Count(uint64(count), "table", "tables"),
		report.Count(uint64(len(p.ranks)), "rank", "ranks"))
}
