package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/rules"
	"memtrace/internal/sanitize"
)

var softwareNames = []struct{ key, name string }{
	{"torch", "PyTorch"}, {"mxnet", "MXNet"}, {"rmm", "RMM"}, {"jax", "JAX"}, {"cuda_driver", "CUDA driver"},
	{"cuda_runtime",
		"CUDA runtime"},
	{"python", "Python"},
}

// Software lists versions, the well-known ones first.
func Software(versions map[string]string) string {
	var parts []string
	known := map[string]bool{"memtrace": true}
	for _, n := range softwareNames {
		known[n.key] = true
		if v := versions[n.key]; v != "" {
			parts = append(parts, n.name+" "+sanitize.Text(v))
		}
	}
	var rest []string
	for key, v := range versions {
		if !known[key] {
			rest = append(rest, sanitize.Text(key+" "+v))
		}
	}
	slices.Sort(rest)
	return strings.Join(append(parts, rest...), ", ")
}

// FrameworkName is the display name of the framework level of a run with these versions.
func FrameworkName(versions map[string]string) string {
	name := "framework"
	for _, n := range softwareNames[:4] {
		if versions[n.key] != "" {
			name = n.name
			break
		}
	}
	pools := ""
	switch {
	case versions["pools"] != "":
		pools = "pools"
	case versions["pool"] != "":
		pools = "pool " + sanitize.Text(versions["pool"])
	default:
		return name
	}
	if name == "framework" {
		return pools
	}
	return name + " and " + pools
}

// DeviceName is the name of a device in tables.
func DeviceName(index int16) string {
	if index < 0 {
		return "no device"
	}
	return fmt.Sprintf("device %d", index)
}

// Device describes a device: its name and its memory.
func Device(d report.Device, null bool) string {
	text := cmp.Or(sanitize.Text(d.Name), "unknown")
	if d.Index < 0 {
		text = "memory whose device is not known"
	}
	if d.TotalBytes > 0 {
		text += ", " + Bytes(d.TotalBytes)
	}
	if null {
		text += " (no hardware)"
	}
	return text
}

// Framework is the name of the framework in sentences.
func Framework(versions map[string]string) string {
	if name := FrameworkName(versions); name != "framework" {
		return name
	}
	return "the framework"
}

// Genitive is the genitive of a framework's name: "PyTorch's".
func Genitive(name string) string {
	if strings.HasSuffix(name, "pools") {
		return name + "'"
	}
	return name + "'s"
}

// FrameworkBlocks is the name of the blocks of the framework level.
func FrameworkBlocks(versions map[string]string) string {
	name := FrameworkName(versions)
	if strings.HasSuffix(name, "pools") {
		name = strings.TrimSuffix(name, "s")
	}
	return name + " blocks"
}

// TrainingLevel is the name of the level that training describes.
func TrainingLevel(s *report.Summary, t *report.Training) string {
	if t.Level == report.LevelFramework {
		return FrameworkName(s.Versions)
	}
	return "the driver"
}

// CategoryWord is the name of a category in tables.
func CategoryWord(category string) string {
	if category == rules.Others {
		return "not categorized"
	}
	return category
}

// LevelName is the display name of the main level: the framework's name, or the driver.
func LevelName(s *report.Summary) string {
	if s.MainLevel() == report.LevelFramework {
		return Framework(s.Versions)
	}
	return "CUDA"
}

// Source names the program, or the file of another tool that a trace was made from.
func Source(proc report.Process) (name, value string) {
	if proc.Imported != "" {
		return "imported", sanitize.Text(proc.Imported)
	}
	return "command", cmp.Or(Command(proc), "unknown")
}
