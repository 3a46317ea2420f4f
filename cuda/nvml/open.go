//go:build cgo && linux && (amd64 || arm64)

package nvml

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -Werror -fvisibility=hidden
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "symbols.h"

static void *mt_nvml_open(const char *name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL); }
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const libraryName = "libnvidia-ml.so.1"

// Library is the loaded management library. It is for one goroutine; only one may be open at a time.
type Library struct{ api api }

// Open loads and starts the library. The error is ErrNoLibrary where there is none; other errors hold what the library
// returned.
func Open() (*Library, error) {
	if err := bind(); err != nil {
		return nil, err
	}
	l := &Library{api: nvml.New()}
	if ret := l.api.Init(); ret != nvml.SUCCESS {
		return nil, openError(ret)
	}
	return l, nil
}

// bind resolves the names that go-nvml calls to the library, before go-nvml loads it itself. The handle stays open: the
// stubs jump into it.
func bind() error {
	name := C.CString(libraryName)
	defer C.free(unsafe.Pointer(name))
	handle := C.mt_nvml_open(name)
	C.mt_nvml_symbols_bind(handle)
	if handle == nil {
		return ErrNoLibrary
	}
	return nil
}

func openError(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return ErrNoLibrary
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return fmt.Errorf(
			"start %s: the NVIDIA driver is not loaded: load its kernel module (nvidia), or reboot after installing the driver", libraryName)
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("start %s: no permission for the device files: see who may open /dev/nvidiactl", libraryName)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return fmt.Errorf(
			"start %s: it is of another version than the loaded kernel module: reboot after updating the driver",
			libraryName)
	}
	return fmt.Errorf("start %s: %w", libraryName, failure(ret))
}

// Close ends the use of the library.
func (l *Library) Close() error {
	if ret := l.api.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("end %s: %w", libraryName, failure(ret))
	}
	return nil
}
