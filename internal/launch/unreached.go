package launch

import (
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"memtrace/internal/safefile"
)

// Diagnose returns why the recorder did not reach a program, as far as its file shows it.
func Diagnose(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return "; " + program + " is setuid or setgid, and such programs ignore LD_PRELOAD"
	}
	if size, err := unix.Getxattr(path, "security.capability", nil); err == nil && size > 0 {
		return "; " + program + " has file capabilities (setcap), and such programs ignore LD_PRELOAD"
	}
	opened, err := safefile.Open(path)
	if err != nil {
		return ""
	}
	defer opened.Close()
	file, err := elf.NewFile(opened)
	if err != nil {
		return "" // a script: its interpreter is a program like any other
	}
	if file.Class != elf.ELFCLASS64 {
		return "; " + program + " is a 32-bit program, which cannot load the recorder"
	}
	for _, header := range file.Progs {
		if header.Type == elf.PT_INTERP {
			return diagnoseLoader(program, header)
		}
	}
	return "; " + program + " is statically linked, so nothing can be preloaded into it"
}

// diagnoseLoader does it by the loader that a program names.
func diagnoseLoader(program string, header *elf.Prog) string {
	name, err := io.ReadAll(io.LimitReader(header.Open(), unix.PathMax))
	if err == nil && strings.Contains(string(name), "ld-musl") {
		return "; " + program + " uses the musl C library, for which there is no CUDA"
	}
	return ""
}
