package symbol

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// maxLink bounds .gnu_debuglink and .gnu_debugaltlink: a file's name and a checksum.
const maxLink = 8 << 10

// defaultSources is the folder of debug files in distributions.
var defaultSources = []string{"/usr/lib/debug"}

// isBuildID reports whether a text is a build-id: an even number of hexadecimal digits. A trace may contain any text in
// its place, such as a path that leads out of the folder in which a build-id's file is looked up.
func isBuildID(id string) bool {
	return len(id) >= 4 && len(id) <= 128 && len(id)%2 == 0 && strings.Trim(id, "0123456789abcdef") == ""
}

// idPath is the path of a build-id's file in a folder of debug files; "" if the build-id is invalid.
func idPath(folder, id string) string {
	if !isBuildID(id) {
		return ""
	}
	return filepath.Join(folder, ".build-id", id[:2], id[2:]+".debug")
}

// findDebugFile looks for the debug file of an object by its build-id. It returns nil if there is none; a file that
// belongs to another object, or cannot be used, is reported to problem.
func findDebugFile(folders []string, id string, problem func(path string, err error)) *image {
	for _, folder := range folders {
		path := idPath(folder, id)
		if path == "" {
			return nil
		}
		debugFile, err := openImage(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problem(path, err)
		case debugFile.id != id:
			problem(path, errors.New("is of another build"))
			debugFile.close()
		default:
			return debugFile
		}
	}
	return nil
}

// linkedDebugFile looks for the file that .gnu_debuglink names: next to the object, in .debug there, and under each
// folder by the object's path.
func (im *image) linkedDebugFile(folders []string, problem func(path string, err error)) *image {
	name, sum, ok := im.debugLink()
	if !ok {
		return nil
	}
	here := filepath.Dir(im.path)
	places := []string{filepath.Join(here, name), filepath.Join(here, ".debug", name)}
	for _, folder := range folders {
		places = append(places, filepath.Join(folder, here, name))
	}
	for _, path := range places {
		if path == im.path {
			continue
		}
		debugFile, err := openImage(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil:
			if err = debugFile.belongsTo(im, sum); err == nil {
				return debugFile
			}
			debugFile.close()
		}
		problem(path, err)
	}
	return nil
}

// debugLink reads .gnu_debuglink: a name, padding to 4 bytes, a CRC-32.
func (im *image) debugLink() (name string, sum uint32, ok bool) {
	s := im.section(".gnu_debuglink")
	if s == nil {
		return "", 0, false
	}
	data, err := im.content(s, maxLink)
	if err != nil {
		return "", 0, false
	}
	end := bytes.IndexByte(data, 0)
	at := (end + 4) &^ 3
	if end <= 0 || at+4 > len(data) || filepath.Base(string(data[:end])) != string(data[:end]) {
		return "", 0, false
	}
	return string(data[:end]), im.elf.ByteOrder.Uint32(data[at:]), true
}

// belongsTo compares the build-ids; where one is missing, the checksum over the whole file.
func (im *image) belongsTo(object *image, sum uint32) error {
	if im.id != "" && object.id != "" {
		if im.id != object.id {
			return fmt.Errorf("is of another build, not of build-id %s", object.id)
		}
		return nil
	}
	crc := crc32.NewIEEE()
	if _, err := io.Copy(crc, io.NewSectionReader(im.file, 0, im.size)); err != nil {
		return err
	}
	if crc.Sum32() != sum {
		return errors.New("is of another build (its checksum differs)")
	}
	return nil
}

// sharedDebugFile opens the file that .gnu_debugaltlink names, in which a distribution keeps what several debug files
// have in common. It returns nil if none is named.
func (im *image) sharedDebugFile(folders []string) (*image, error) {
	s := im.section(".gnu_debugaltlink")
	if s == nil {
		return nil, nil
	}
	data, err := im.content(s, maxLink)
	if err != nil {
		return nil, err
	}
	name, id, ok := bytes.Cut(data, []byte{0})
	if !ok || len(name) == 0 {
		return nil, errors.New("damaged .gnu_debugaltlink")
	}
	wanted := fmt.Sprintf("%x", id)
	path := string(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(im.path), path)
	}
	places := []string{path}
	for _, folder := range folders {
		places = append(places, idPath(folder, wanted))
	}
	if !isBuildID(wanted) { // or a file without one would do
		places = nil
	}
	for _, place := range places {
		shared, err := openImage(place)
		if err != nil {
			continue
		}
		if shared.id == wanted {
			return shared, nil
		}
		shared.close()
	}
	return nil, fmt.Errorf("%s, which it shares with other debug files, is not here", path)
}
