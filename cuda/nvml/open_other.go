//go:build !cgo || !linux || !(amd64 || arm64)

package nvml

// Library is the loaded management library; this build has none.
type Library struct{}

// Open returns ErrNotBuilt.
func Open() (*Library, error) { return nil, ErrNotBuilt }

// Read is never reached.
func (*Library) Read() (Snapshot, error) { return Snapshot{}, ErrNotBuilt }

// Close does nothing.
func (*Library) Close() error { return nil }
