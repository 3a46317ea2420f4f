package attach

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// region is a line of /proc/PID/maps.
type region struct {
	start, end, offset uint64
	name               string
}

func readRegions(proc string) ([]region, error) {
	file, err := os.Open(filepath.Join(proc, "maps"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no process %s", filepath.Base(proc))
	case err != nil:
		return nil, fmt.Errorf("process %s belongs to another user: run memtrace attach as that user or as root",
			filepath.Base(proc))
	}
	defer file.Close()
	var list []region
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 4096), 64<<10)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		var r region
		from, to, _ := strings.Cut(fields[0], "-")
		r.start, _ = strconv.ParseUint(from, 16, 64)
		r.end, _ = strconv.ParseUint(to, 16, 64)
		r.offset, _ = strconv.ParseUint(fields[2], 16, 64)
		if at := strings.IndexAny(lines.Text(), "/["); at >= 0 {
			r.name = lines.Text()[at:]
		}
		list = append(list, r)
	}
	return list, lines.Err()
}

// functions are addresses in the process; 0: not found.
type functions struct {
	dlopen, dlsym, dlerror, errno uint64
	mode                          uint64 // a flag that this dlopen needs
}

// fromOwnCode is what __libc_dlopen_mode, which glibc itself used until 2.33, takes as a sign that it is called as
// intended.
const fromOwnCode = 0x80000000

func findFunctions(t *target) (functions, error) {
	var f functions
	libc, err := t.symbols("libc.so.6", "libc-2.")
	switch {
	case err != nil:
		return f, err
	case libc == nil && t.mapsMusl():
		return f, errors.New(
			"the process uses musl, not glibc: start the program by memtrace run, or call memtrace.start() in it")
	case libc == nil:
		return f, errors.New(
			"the process is linked statically: no library can be loaded into it, and no hook would be reached")
	}
	f.errno = libc["__errno_location"]
	libdl, err := t.symbols("libdl.so.2", "libdl-2.")
	if err != nil {
		return f, err
	}
	for _, from := range []map[string]uint64{libc, libdl} {
		if from["dlopen"] != 0 {
			f.dlopen, f.dlsym, f.dlerror = from["dlopen"], from["dlsym"], from["dlerror"]
		}
	}
	if f.dlopen == 0 {
		f.dlopen, f.dlsym, f.mode = libc["__libc_dlopen_mode"], libc["__libc_dlsym"], fromOwnCode
	}
	if f.dlopen == 0 || f.dlsym == 0 || f.errno == 0 {
		return f, errors.New("the process's C library has no dlopen: start the program by memtrace run")
	}
	return f, nil
}

// mapsMusl reports whether the process has musl, whose loader and C library are one file under several names.
func (t *target) mapsMusl() bool {
	return slices.ContainsFunc(t.regions, func(r region) bool {
		return strings.Contains(r.name, "musl") || filepath.Base(r.name) == "libc.so"
	})
}

// symbols returns the addresses of the functions of a loaded library, nil where it is not loaded.
func (t *target) symbols(name, oldName string) (map[string]uint64, error) {
	for _, r := range t.regions {
		base := filepath.Base(r.name)
		if r.offset != 0 || base != name && !(strings.HasPrefix(base, oldName) && strings.HasSuffix(base, ".so")) {
			continue
		}
		file, err := elf.Open(filepath.Join(t.proc, "map_files", fmt.Sprintf("%x-%x", r.start, r.end)))
		if err != nil { // the files of another user's process are root's to open so
			file, err = elf.Open(filepath.Join(t.proc, "root", r.name))
		}
		if err != nil {
			return nil, fmt.Errorf("read the process's C library: %w", err)
		}
		defer file.Close()
		if file.Machine != machine {
			return nil, fmt.Errorf("the process is built for %s, memtrace for %s", file.Machine, machine)
		}
		return addresses(file, r.start)
	}
	return nil, nil
}

func addresses(file *elf.File, base uint64) (map[string]uint64, error) {
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("read the process's C library: %w", err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			base -= p.Vaddr &^ 0xfff
			break
		}
	}
	found := make(map[string]uint64)
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && found[s.Name] == 0 {
			found[s.Name] = base + s.Value
		}
	}
	return found, nil
}
