package top

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"memtrace/analyzer"
	"memtrace/internal/safefile"
	"memtrace/internal/version"
	"memtrace/trace"
)

// A look at a program that runs leaves a bookmark in this user's cache, so that the next one reads what was recorded
// since. The trace is not written to, and nothing depends on the bookmark: one that is missing, damaged, of another
// build or of another trace costs a reading from the beginning.

const (
	// bookmarkBlocks is how many events are read for each live block before another bookmark is made, which holds it.
	bookmarkBlocks = 32
	// maxBookmark bounds the size of one, bytes; maxBookmarks that of all, of which the oldest go.
	maxBookmark  = 256 << 20
	maxBookmarks = 1 << 30
)

// bookmarkEvents is how many events are read before another bookmark is made. Tests have shorter traces.
var bookmarkEvents uint64 = 1 << 20

// DefaultBookmarks is the folder for Host.Bookmarks: $XDG_CACHE_HOME/memtrace/bookmarks, else
// ~/.cache/memtrace/bookmarks, "" without a home directory.
func DefaultBookmarks() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "memtrace", "bookmarks")
}

// bookmark is where the reading of one trace is kept.
type bookmark struct {
	path   string // "": nowhere
	events uint64 // read before the latest one
	live   uint64 // blocks that it holds
}

// newBookmark returns where a reading of a trace is kept; one for metrics counts other things.
func newBookmark(folder, tracePath string, detailed bool) bookmark {
	if folder == "" || tracePath == "" {
		return bookmark{}
	}
	name := sha256.Sum256(fmt.Appendf(nil, "%t %s", detailed, tracePath))
	return bookmark{path: filepath.Join(folder, hex.EncodeToString(name[:16]))}
}

// builtAs tells builds apart: bookmarks hold what only the build that wrote them reads.
func builtAs() string {
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return version.String
	}
	return fmt.Sprintf("%s %d %d", version.String, own.Size(), own.ModTime().UnixNano())
}

// load returns nil where there is none that this build reads.
func (c *bookmark) load() *trace.Keyframe {
	if c.path == "" {
		return nil
	}
	file, err := safefile.OpenUnlinked(c.path, maxBookmark)
	if err != nil {
		return nil
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil
	}
	f, err := trace.ReadBookmark(file, st.Size(), builtAs())
	if err != nil {
		return nil
	}
	c.events, c.live = f.Events, uint64(len(f.Live))
	return f
}

// save keeps what a profile knows after so many events, if that is worth it. What cannot be written is not an error of
// the view.
func (c *bookmark) save(p *analyzer.Profile, events uint64) {
	if c.path == "" || events < c.events+max(bookmarkEvents, bookmarkBlocks*c.live) {
		return
	}
	f := p.Bookmark()
	if f == nil {
		return
	}
	c.events, c.live = events, uint64(len(f.Live))
	err := safefile.Replace(c.path, func(w io.Writer) error { return trace.WriteBookmark(w, builtAs(), f) })
	if err == nil {
		safefile.Trim(filepath.Dir(c.path), maxBookmarks)
	}
}
