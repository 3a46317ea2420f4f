package rulefile

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"memtrace/internal/rules"
)

//go:embed presets/*.toml
var presets embed.FS

// Default is the preset used if none is named.
const Default = "torch"

// presetNames is in the order of help texts.
var presetNames = []string{Default, "libraries", "mxnet-tbd", "mxnet-layers", "mxnet-data-structures", "tbd-paper"}

// Presets lists the names of the sets that come with memtrace.
func Presets() []string { return slices.Clone(presetNames) }

// PresetText returns a preset as it is written.
func PresetText(name string) ([]byte, error) {
	if !slices.Contains(presetNames, name) {
		return nil, fmt.Errorf("there is no preset %q; choose from %s", name, strings.Join(presetNames, ", "))
	}
	return presets.ReadFile("presets/" + name + ".toml")
}

// Preset returns a set that comes with memtrace.
func Preset(name string) (*rules.Set, error) {
	text, err := PresetText(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+".toml", text)
}

// Open returns the preset of that name, or else reads the file.
func Open(name string) (*rules.Set, error) {
	if slices.Contains(presetNames, name) {
		return Preset(name)
	}
	set, err := Load(name)
	if err != nil && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("%w; the presets are %s", err, strings.Join(presetNames, ", "))
	}
	return set, err
}
