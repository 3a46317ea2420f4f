package report

// OwnAccount is a framework's own account of its memory on one device, at the highest of its samples: about once a
// second, when memory ran out, and when the interpreter ended. It is part of the driver's memory and is added to
// nothing. Frameworks that report every block have none.
type OwnAccount struct {
	Framework string    `json:"framework"`
	Device    string    `json:"device"` // as the framework calls it
	Bytes     uint64    `json:"bytes"`
	Count     uint64    `json:"count"` // of buffers
	Sites     []OwnSite `json:"sites"` // largest first
}

// OwnSite is a line of the program, or the framework's function where the program has none.
type OwnSite struct {
	Site  string `json:"site"`
	Bytes uint64 `json:"bytes"`
	Count uint64 `json:"count"`
}
