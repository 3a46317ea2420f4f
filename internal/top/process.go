package top

import (
	"bytes"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// userNames caches the system's answers: looking a user up may use the network.
type userNames map[uint32]string

// describe returns who runs a process and as what; "?" for what cannot be known, such as of a process in another pid
// namespace.
func (u userNames) describe(pid int) (owner, command string) {
	dir := "/proc/" + strconv.Itoa(pid)
	owner, command = "?", "?"
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = u.name(st.Uid)
		}
	}
	if text, err := os.ReadFile(dir + "/cmdline"); err == nil && len(text) > 0 {
		command = strings.TrimSpace(string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
	} else if text, err := os.ReadFile(dir + "/comm"); err == nil {
		command = "[" + strings.TrimSpace(string(text)) + "]"
	}
	return owner, command
}

func (u userNames) name(uid uint32) string {
	if name, known := u[uid]; known {
		return name
	}
	name := strconv.FormatUint(uint64(uid), 10)
	if found, err := user.LookupId(name); err == nil && found.Username != "" {
		name = found.Username
	}
	u[uid] = name
	return name
}
