package exportcmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/cli"
	"memtrace/internal/profile"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
)

// CSVName is the one format that is a folder: a file for each table of the report.
const CSVName = "csv"

// CSVExtension is the ending of each of its files.
const CSVExtension = ".csv"

// CSVTables lists what the files hold, for the help text.
func CSVTables() string {
	var list strings.Builder
	for _, t := range render.CSVTables() {
		fmt.Fprintf(&list, "  %-18s  %s\n", t.Name+CSVExtension, t.Doc)
	}
	return list.String()
}

// checkCSV refuses flags that are about call stacks.
func (f *Flags) checkCSV() error {
	for _, flag := range []string{"value", "level", "full-stacks", "no-lines"} {
		if f.changed(flag) {
			return cli.UsageErrorf("--%s does not apply to %s, which has tables; leave it out", flag, CSVName)
		}
	}
	for _, flag := range parquetOnly {
		if f.changed(flag) {
			return cli.UsageErrorf("--%s does not apply to %s; leave it out", flag, CSVName)
		}
	}
	switch {
	case f.push.enabled():
		return cli.UsageErrorf("--push sends pprof's profile; leave out %s", CSVName)
	case f.output == "-":
		return cli.UsageErrorf("%s writes a file for each table; name a folder with -o", CSVName)
	}
	return nil
}

// CSV writes the report's tables into a folder, one file each. Tables without a row are left out.
func (e *Exporter) CSV(flags *Flags, arg string) error {
	if err := flags.checkCSV(); err != nil {
		return err
	}
	options, _, err := flags.check()
	if err != nil {
		return err
	}
	path, err := tracefile.One(arg)
	if err != nil {
		return err
	}
	options.Groupings, options.Sites = profile.GroupingNames(), true
	if err := requestCSV(&options); err != nil {
		return err
	}
	folder := flags.output
	if folder == "" {
		folder = pathOf(path, &Format{Extension: CSVExtension})
	}
	if err := makeFolder(folder); err != nil {
		return err
	}
	s, err := tracefile.Summarize(e.Console, path, options)
	if err != nil {
		return errors.Join(err, removeEmpty(folder))
	}
	written := 0
	for _, t := range render.CSVTables() {
		if t.Empty(s) {
			continue
		}
		if err := e.WriteTo(filepath.Join(folder, t.Name+CSVExtension), flags.force, sanitize.Lines,
			func(w io.Writer) error { return t.Write(w, s) }); err != nil {
			return errors.Join(err, removeEmpty(folder))
		}
		written++
	}
	if !s.Health.Complete {
		e.Log.Warn().Msgf("%s: %s; 'memtrace report' says more", path, layout.Health(s.Health, s.LostRecords))
	}
	switch {
	case written == 0:
		return errors.Join(fmt.Errorf("%s: the program made no CUDA memory call, so there is no table", path),
			removeEmpty(folder))
	case !e.Quiet:
		e.Say("wrote %s, %d tables", folder, written)
	}
	return nil
}

// requestCSV requests categories, and the figures of a training program.
func requestCSV(o *analyzer.Options) error {
	groupings := o.Groupings
	if err := (&cli.ViewFlags{Names: []string{"modules"}}).RequestTraining(&cli.QueryFlags{}, o); err != nil {
		return err
	}
	o.Groupings, o.Cross, o.Timeline = append(groupings, cli.ByCategory),
		[]string{"module", cli.ByCategory}, cli.ByCategory
	return nil
}

// makeFolder makes a folder unless it is there.
func makeFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is a file; name a folder with -o", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open the output: %w", err)
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		return fmt.Errorf("%s cannot be created: %w; name another folder with -o", path, cli.WithoutPath(err))
	}
	return nil
}

// removeEmpty removes a folder that nothing was written to.
func removeEmpty(path string) error {
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("take back the folder: %w", err)
	}
	return nil
}
