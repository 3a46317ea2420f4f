package render

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The picture of a report was aligned by runs of spaces, which renderers of SVG make one: rsvg-convert showed its
// columns out of line. No text of a picture depends on them, and each part of the report's lines has its width.
func TestPicturesKeepTheirSpaces(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.svg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %d pictures", err, len(paths))
	}
	for _, path := range paths {
		report, texts := filepath.Base(path) == "report.svg", 0
		for _, text := range picturedTexts(t, path) {
			if strings.Contains(text.words, "  ") || strings.HasPrefix(text.words, " ") {
				t.Errorf("%s: %q has spaces that are not kept", path, text.words)
			}
			if report && text.width != "" && text.words != "" {
				texts++
				width, err := strconv.ParseFloat(text.width, 64)
				if want := 12.2 * float64(utf8.RuneCountInString(text.words)); err != nil ||
					math.Abs(width-want) > 0.2 {
					t.Errorf("%s: %q is %s wide, want %.1f", path, text.words, text.width, want)
				}
			}
		}
		if report && texts < 20 {
			t.Errorf("%s has %d texts", path, texts)
		}
	}
}

// picturedText is what an SVG's text element says, and its length if it has one of its own.
type picturedText struct{ words, width string }

func picturedTexts(t *testing.T, path string) (list []picturedText) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := xml.NewDecoder(file)
	inside := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "text" {
				inside++
				list = append(list, picturedText{})
				for _, a := range e.Attr {
					if a.Name.Local == "textLength" {
						list[len(list)-1].width = a.Value
					}
				}
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				inside--
			}
		case xml.CharData:
			if inside > 0 && strings.TrimSpace(string(e)) != "" || inside > 0 && strings.Contains(string(e), "\u00a0") {
				list[len(list)-1].words += string(e)
			}
		}
	}
}
