package launch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"memtrace/internal/cli"
)

// NullGPU is the CUDA without a GPU on which a program may run. The zero value is none. As a flag's value it is a
// number of devices, the size of each, or both: 2, 24GiB, 2x24GiB.
type NullGPU struct {
	Devices int
	Bytes   int64 // of each device
}

// DefaultNullGPU is what a flag without a value means.
const DefaultNullGPU = "1x80GiB"

// What the null GPU can be: testdata/nullcuda/shared/config.c.
const (
	nullDevicesMost = 8
	nullBytesLeast  = 1 << 20
	nullBytesMost   = 16 << 40
	nullBytes       = 80 << 30 // where only a number is given
)

// String returns the value, or "" of none.
func (n *NullGPU) String() string {
	if *n == (NullGPU{}) {
		return ""
	}
	return fmt.Sprintf("%dx%d", n.Devices, n.Bytes)
}

// Type returns what the help calls a value.
func (*NullGPU) Type() string { return "NUMBERxSIZE" }

// Set reads a value. The error says what it may be.
func (n *NullGPU) Set(text string) error {
	number, size, sized := strings.Cut(text, "x")
	if _, err := strconv.ParseInt(text, 10, 64); !sized && err != nil {
		number, size, sized = "1", text, true
	}
	devices, err := strconv.Atoi(number)
	if err != nil || devices < 1 || devices > nullDevicesMost {
		return fmt.Errorf("give 1 to %d devices, the size of each, or both: 2, 24GiB or 2x24GiB", nullDevicesMost)
	}
	bytes := int64(nullBytes)
	if sized {
		if bytes, err = cli.ParseSize(size); err != nil {
			return err
		}
	}
	if bytes < nullBytesLeast || bytes > nullBytesMost {
		return fmt.Errorf("give each device 1 MiB to 16 TiB, such as 24GiB")
	}
	*n = NullGPU{devices, bytes}
	return nil
}

// nullGPUFolders are where the null GPU may be, relative to the folder of this executable: in a wheel, in an
// installation, in a build tree.
var nullGPUFolders = []string{"nullgpu", "../lib/memtrace/nullgpu", "nullcuda/lib"}

// auditor is the object that has the dynamic loader take the null GPU's libraries.
const auditor = "redirect.so"

// findNullGPU returns the absolute path of the auditor, which has the libraries beside it.
func findNullGPU() (string, error) {
	folder, err := FindBeside(auditor, nullGPUFolders, "the null GPU comes with memtrace's wheel and packages, "+
		"and 'make nullcuda' builds it")
	if err != nil {
		return "", err
	}
	if strings.Contains(folder, ":") { // the dynamic linker splits LD_AUDIT there
		return "", fmt.Errorf("%s: LD_AUDIT cannot hold a path with a colon; install memtrace elsewhere", folder)
	}
	return filepath.Join(folder, auditor), nil
}

// Apply returns an environment in which programs find the null GPU, whatever GPU the machine has. The processes that
// name the same account share its memory.
func (n NullGPU) Apply(env []string, account string) ([]string, error) {
	path, err := findNullGPU()
	if err != nil {
		return nil, err
	}
	others := strings.FieldsFunc(LookupVariable(env, "LD_AUDIT"), func(r rune) bool { return r == ':' })
	env = SetVariable(env, "LD_AUDIT", strings.Join(append([]string{path}, others...), ":"))
	// It names devices of the machine. PyTorch would look for them.
	env = slices.DeleteFunc(env, func(line string) bool { return strings.HasPrefix(line, "CUDA_VISIBLE_DEVICES=") })
	env = SetVariable(env, "NULLCUDA_DEVICES", strconv.Itoa(n.Devices))
	env = SetVariable(env, "NULLCUDA_MEM", strconv.FormatInt(n.Bytes, 10))
	env = SetVariable(env, "NULLCUDA_SHARED", account)
	// The stand-in for cuDNN has no attention; PyTorch has others.
	return SetVariable(env, "TORCH_CUDNN_SDPA_DEPRIORITIZED", "1"), nil
}
