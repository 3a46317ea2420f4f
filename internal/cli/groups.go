package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of flags that a help shows, in this order; flags of no group come last.
const (
	Recording  = "What to record"
	GroupWhat  = "What to show"
	Gates      = "Gates"
	GroupViews = "With --view"
	GroupPart  = "Part of the run"
	Filters    = "Filters"
	Layout     = "Layout"
	Output     = "Output"
	Afterwards = "Afterwards"
)

const groupKey = "group" // annotation of a flag

// GroupFlags puts flags that the caller has just defined into a group.
func GroupFlags(cmd *cobra.Command, title string, flags ...string) {
	for _, name := range flags {
		if err := cmd.Flags().SetAnnotation(name, groupKey, []string{title}); err != nil {
			panic(err) // the flag's name is misspelt in this package
		}
	}
}

// FlagGroup is one group of a command's flags, in the order in which they were defined.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// FlagGroups returns the flags of a command by group, without empty groups.
func FlagGroups(cmd *cobra.Command) (groups []FlagGroup) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Usage = "print this help"
	cmd.InheritedFlags() // adds them to the command's own
	cmd.Flags().SortFlags = false
	for _, title := range []string{Recording, GroupWhat, GroupViews, Gates, GroupPart, Filters, Layout, Output,
		Afterwards, ""} {
		set := pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if group := f.Annotations[groupKey]; title == "" && group == nil || group != nil && group[0] == title {
				set.AddFlag(f)
			}
		})
		switch {
		case !set.HasAvailableFlags():
			continue
		case title == "" && groups == nil:
			title = "Flags"
		case title == "":
			title = "Other"
		}
		groups = append(groups, FlagGroup{title, set})
	}
	return groups
}
