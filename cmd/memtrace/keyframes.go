package main

import (
	"errors"
	"fmt"
	"os"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/safefile"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// addKeyframes adds keyframes to a finished trace that has none of this version.
func addKeyframes(a *app, path string) error {
	unlock, err := lockTrace(path)
	if err != nil {
		return err
	}
	defer unlock()
	run, err := tracefile.OpenAgain(path)
	if err != nil {
		return err
	}
	defer run.Close()
	if run.Keyframes() != nil {
		if !a.Quiet {
			a.Say("%s: keyframes are there already", path)
		}
		return nil
	}
	var options analyzer.Options
	if err := (&cli.ViewFlags{}).RequestTraining(&cli.QueryFlags{}, &options); err != nil {
		return err
	}
	done, err := tracefile.LookAhead(path, &options)
	if err != nil {
		return err
	}
	defer done()
	bar := a.NewProgress(path, run.Size())
	defer bar.Finish()
	options.Progress = bar.Update
	file, err := run.OpenToWrite(path)
	if err != nil {
		return tracefile.OpenError(path, err)
	}
	added, err := appendKeyframes(file, run, options)
	if err = errors.Join(err, file.Close()); err != nil {
		return keyframesError(a, file, path, err)
	}
	if !a.Quiet {
		a.Say("%s: added %s", path, added)
	}
	return nil
}

// appendKeyframes replays a trace and adds keyframes to its file. It returns how many, in words.
func appendKeyframes(file *os.File, src analyzer.KeyframeSource, options analyzer.Options) (added string, err error) {
	var count int
	var size int64
	err = trace.AppendKeyframes(file, func(
		put func(*trace.Keyframe) (int64, error)) (closing *trace.KeyframesClosing, err error) {
		closing, count, err = analyzer.MakeKeyframes(src, options, analyzer.UsualDistance,
			func(k *trace.Keyframe) (int64, error) {
				bytes, err := put(k)
				size += bytes
				return bytes, err
			})
		return closing, err
	})
	return fmt.Sprintf("%s, %.1f KiB", report.Count(uint64(count), "keyframe", "keyframes"), float64(size)/1024), err
}

// addKeyframes adds keyframes to a copy that is finished, if it can have some and has at most so many bytes with them;
// 0: any.
func (c *compacted) addKeyframes(a *app, most int64) error {
	var options analyzer.Options
	if err := (&cli.ViewFlags{}).RequestTraining(&cli.QueryFlags{}, &options); err != nil {
		return err
	}
	ahead, err := trace.NewReader(c.content(), c.size)
	if err != nil {
		return err
	}
	options.Ahead = ahead
	src, err := trace.NewReader(c.content(), c.size)
	if err != nil {
		return err
	}
	if _, err := appendKeyframes(c.file, src, options); errors.Is(err, analyzer.ErrNoKeyframes) ||
		errors.Is(err, trace.ErrNoEnd) {
		a.Log.Warn().Msgf("%v; reports of the copy begin at its beginning", err)
		return nil
	} else if err != nil {
		return err
	}
	st, err := c.file.Stat()
	if err == nil && most > 0 && st.Size() > most {
		a.Log.Warn().Msg("keyframes are left out: with them the copy would be larger than --max")
		return c.file.Truncate(c.size)
	}
	if err == nil {
		c.size = st.Size()
	}
	return err
}

// keyframesError says why nothing was added.
func keyframesError(a *app, file *os.File, path string, err error) error {
	switch {
	case errors.Is(err, analyzer.ErrNoKeyframes):
		a.Log.Warn().Msgf("%v; reports of %s begin at its beginning", err, path)
		return nil
	case errors.Is(err, trace.ErrNoEnd), errors.Is(err, safefile.ErrNotRegular):
		return fmt.Errorf("%s: %w", path, err)
	}
	return cli.WriteError(file, path, err)
}
