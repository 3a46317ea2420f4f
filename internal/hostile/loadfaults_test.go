package hostile

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// faultsOfLoading is how many pages more a process may touch that has the library loaded and makes no CUDA call: 21
// where this was written, of which 7 come with any library. Each costs it about 2 us.
const faultsOfLoading = 30

// Whoever never touches CUDA pays for loading the library only, which is page faults for the most part. They can be
// counted, where time cannot.
func TestFaultsWithoutCUDA(t *testing.T) {
	t.Parallel()
	faults := func(environment ...string) int64 {
		fewest := int64(1 << 40)
		for range 10 { // what the kernel has at hand differs
			cmd := exec.Command("/bin/true")
			cmd.Env = environment
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			fewest = min(fewest, cmd.ProcessState.SysUsage().(*syscall.Rusage).Minflt)
		}
		return fewest
	}
	if _, err := os.Stat("/bin/true"); err != nil {
		t.Skip("no /bin/true")
	}
	plain, loaded := faults("PATH=/bin"), faults("PATH=/bin", "LD_PRELOAD="+library(t))
	t.Logf("%d page faults, %d with the library", plain, loaded)
	if loaded == plain {
		t.Errorf("the library is not loaded")
	}
	if loaded-plain > faultsOfLoading {
		t.Errorf(
			"the library costs %d page faults, at most %d are wanted: put what is written while it is loaded to the rest (cshim/base/atload.h)", loaded-plain, faultsOfLoading)
	}
}
