package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"memtrace/internal/section"
)

// BookmarkVersion is that of the state in bookmarks, which are read by the version that wrote them only.
const BookmarkVersion = 1

// ErrNoBookmark is returned for a file that is no bookmark of this version.
var ErrNoBookmark = errors.New("no bookmark of this version")

// bookmarkHead is what the first section of a bookmark begins with. The parts of a keyframe follow it.
const bookmarkHead = 5

// WriteBookmark writes a bookmark as a file of its own. by is who writes it: its version.
func WriteBookmark(to io.Writer, by string, k *Keyframe) error {
	w, err := NewWriter(to, WriterOptions{})
	if err != nil {
		return err
	}
	defer w.sections.Close()
	parts := w.keyframeParts(k)
	head := binary.AppendUvarint([]byte{bookmarkHead}, BookmarkVersion)
	head = binary.AppendUvarint(binary.AppendUvarint(appendText(head, by), k.Events), uint64(len(parts)))
	if err := w.sections.Write(section.Keyframe, head, false); err != nil {
		return err
	}
	for _, part := range parts {
		if err := w.sections.Write(section.Keyframe, part, true); err != nil {
			return err
		}
	}
	return nil
}

// ReadBookmark reads what WriteBookmark wrote. The errors are ErrNoBookmark, damage, and why reading failed.
func ReadBookmark(file io.ReaderAt, size int64, by string) (*Keyframe, error) {
	k := Keyframes{file: file, size: size}
	s := k.from(section.HeadSize)
	payload, err := s.Whole(section.Keyframe)
	if err != nil {
		return nil, fmt.Errorf("read bookmark: %w", err)
	}
	d := decoder{data: payload}
	kind, version, writer, events, parts := d.bytes(1), d.uvarint(), d.text(MaxString), d.uvarint(), d.uvarint()
	if d.failed || kind[0] != bookmarkHead || version != BookmarkVersion || writer != by ||
		parts > maxKeyframeParts {
		return nil, ErrNoBookmark
	}
	f := Keyframe{KeyframePlace: KeyframePlace{Events: events}}
	for range parts {
		if err := readPart(s, &f.Live, &f.State); err != nil {
			return nil, err
		}
	}
	return &f, nil
}
