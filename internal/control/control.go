// Package control sends requests to a running process that has loaded libmemtrace.so, over its socket
// (cshim/process/control.h).
package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// States of a process.
const (
	Idle      = "idle"      // records from its first CUDA call on
	Asleep    = "asleep"    // records nothing until a request
	Recording = "recording" //
	Ended     = "ended"     // the recording was stopped, or the process is ending
	Off       = "off"       // recording failed
)

// StartedLate is Answer.Start where CUDA was in use before.
const StartedLate = "late"

// ErrNoSocket is returned where the process has no socket that answers.
var ErrNoSocket = errors.New("the process has no control socket")

// patience is how long an answer may take: a late start waits for the interpreter's lock and for PyTorch's account.
var patience = 90 * time.Second

// largestPacket is in bytes.
const largestPacket = 64 << 10

// Answer is a process's status.
type Answer struct {
	State string
	Trace string        // as the process itself calls it; "" before it records
	Start string        // "early", "late", or "" where recording began with the program
	Held  uint64        // bytes of PyTorch's blocks that were there when a late recording began
	Stood time.Duration // for which Python was stopped for that account, at most

	referrers uint64 // bytes that follow
	seq       uint64 // at which their tensors were live
}

// Request sends a request to a process and returns its answer. Without a listener the error is ErrNoSocket.
func Request(pid int, request string) (Answer, error) {
	c, err := dial(pid)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	return c.ask(request)
}

// conversation is a connection to a process, in which there is one request.
type conversation struct {
	*net.UnixConn
	pid int
}

func (c conversation) ask(request string) (Answer, error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return Answer{}, err
	}
	if _, err := c.Write([]byte(request)); err != nil {
		return Answer{}, c.explain(err)
	}
	text, err := c.packet()
	if err != nil {
		return Answer{}, err
	}
	return parse(string(text))
}

// packet returns the next one, which is not empty.
func (c conversation) packet() ([]byte, error) {
	text := make([]byte, largestPacket)
	n, err := c.Read(text)
	if err != nil || n == 0 {
		return nil, c.explain(err)
	}
	return text[:n], nil
}

func (c conversation) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("process %d has not answered for %s: it may be stopped", c.pid, patience)
	}
	// it hung up
	return fmt.Errorf(
		"process %d does not answer: it is ending, or another user's, which only that user and root may ask", c.pid)
}

func parse(text string) (Answer, error) {
	var answer Answer
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "state":
			answer.State = value
		case "trace":
			answer.Trace = value
		case "start":
			answer.Start = value
		case "held":
			answer.Held, _ = strconv.ParseUint(value, 10, 64)
		case "stood_ns":
			nanoseconds, _ := strconv.ParseInt(value, 10, 64)
			answer.Stood = time.Duration(nanoseconds)
		case "referrers":
			answer.referrers, _ = strconv.ParseUint(value, 10, 64)
		case "seq":
			answer.seq, _ = strconv.ParseUint(value, 10, 64)
		case "error":
			return answer, errors.New(value)
		}
	}
	if answer.State == "" {
		return answer, errSenseless
	}
	return answer, nil
}

// dial connects to the socket of the process, and makes sure that it is the process that answers.
func dial(pid int) (conversation, error) {
	for _, path := range sockets(pid) {
		connection, err := connect(path)
		switch {
		case errors.Is(err, syscall.EACCES):
			return conversation{}, fmt.Errorf("%s belongs to another user: only that user and root may ask", path)
		case err != nil:
			removeOld(path) // left by a process that was killed
			continue
		}
		if peer, err := peerOf(connection); err == nil && peer == pid {
			return conversation{connection, pid}, nil
		}
		connection.Close()
	}
	return conversation{}, ErrNoSocket
}

// connect takes paths that are too long for a socket's name as well: a folder's, below /proc/PID/root.
func connect(path string) (*net.UnixConn, error) {
	folder, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(folder)
	name := fmt.Sprintf("/proc/self/fd/%d/%s", folder, filepath.Base(path))
	return net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: name, Net: "unixpacket"})
}

// peerOf returns the process at the other end.
func peerOf(connection *net.UnixConn) (int, error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		credentials, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if asked != nil {
		return 0, asked
	}
	return int(credentials.Pid), nil
}
