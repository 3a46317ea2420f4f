package trace

// Unedited is an Editor that changes nothing. Others embed it and replace what they change.
type Unedited struct{}

// Info implements Editor.
func (Unedited) Info(_, value string) (edited string, keep bool) { return value, true }

// String implements Editor.
func (Unedited) String(s string) string { return s }

// Module implements Editor.
func (Unedited) Module(m Module) Module { return m }

// Thread implements Editor.
func (Unedited) Thread(th Thread) Thread { return th }

// Device implements Editor.
func (Unedited) Device(d Device) Device { return d }

// Code implements Editor.
func (Unedited) Code(c Code) Code { return c }

// Symbol implements Editor.
func (Unedited) Symbol(s Symbol) (edited Symbol, keep bool) { return s, true }

// OOM implements Editor.
func (Unedited) OOM(report string) (edited string, keep bool) { return report, true }

// End implements Editor.
func (Unedited) End(e End) End { return e }
