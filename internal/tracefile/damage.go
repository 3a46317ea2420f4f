package tracefile

import (
	"errors"
	"fmt"

	"memtrace/analyzer/report"
)

// DamageList collects what --strict turns into an error once everything has been shown.
type DamageList struct {
	errs []error
}

// Add notes what is cut, damaged, altered or without its end in a trace, if anything is.
func (d *DamageList) Add(path string, s *report.Summary) {
	if s.Health.Truncated {
		d.errs = append(d.errs,
			fmt.Errorf("%s: offset %d: cut or damaged: %s; the part before that was read (--strict)",
				path, s.Health.TruncatedAt, s.Health.TruncatedReason))
	}
	if s.Health.NoEnd != "" {
		d.errs = append(d.errs, fmt.Errorf("%s: no end: its last records may be missing: %s (--strict)", path,
			s.Health.NoEnd))
	}
	if torn := s.Health.Damaged; torn != nil {
		d.errs = append(d.errs, fmt.Errorf("%s: offset %d: damaged: %s; all but %d bytes was read (--strict)", path,
			torn.At, torn.Reason, torn.Bytes))
	}
	if s.Health.Altered != "" {
		d.errs = append(d.errs, fmt.Errorf("%s: changed after it was written: %s (--strict)", path, s.Health.Altered))
	}
}

// Join adds the damage to the error of the work itself.
func (d *DamageList) Join(err error) error {
	return errors.Join(append([]error{err}, d.errs...)...)
}
