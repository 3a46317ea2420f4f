package render

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The columns of a picture were aligned by runs of spaces, which renderers of SVG make one. No text of a picture needs
// them.
func TestPicturesKeepTheirSpaces(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.svg")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %d pictures", err, len(paths))
	}
	for _, path := range paths {
		for _, text := range picturedTexts(t, path) {
			if strings.Contains(text, "  ") || strings.HasPrefix(text, " ") {
				t.Errorf("%s: %q has spaces that are not kept", path, text)
			}
		}
	}
}

// picturedTexts returns what the text elements of an SVG contain.
func picturedTexts(t *testing.T, path string) (list []string) {
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
				list = append(list, "")
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				inside--
			}
		case xml.CharData:
			if inside > 0 && strings.TrimSpace(string(e)) != "" || inside > 0 && strings.Contains(string(e), "\u00a0") {
				list[len(list)-1] += string(e)
			}
		}
	}
}
