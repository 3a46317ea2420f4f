package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/internal/rules/rulefile"
)

const (
	// ByCategory is the grouping that goes by --rules.
	ByCategory     = "category"
	defaultEntries = 20
	maxGroups      = 16
)

// RulesHelp is a part of the description of report and diff: what --by takes, and the rules of its categories.
var RulesHelp = groupingsHelp() + `

--by category sorts memory by rules: the preset torch, or what --rules names, a preset
or a TOML file. Each --group NAME=PRESET or NAME=FILE adds such a grouping under a name
of its own. 'memtrace rules' lists the presets and prints them. Of the preset torch,
Workspace is scratch memory of libraries such as cuBLAS, and Temporary what a forward
pass or a step of the optimizer frees again; docs/glossary.md explains the other words.`

// groupingNames is what --by accepts.
func groupingNames() []string { return append(profile.GroupingNames(), ByCategory) }

func groupingsHelp() string {
	var text strings.Builder
	text.WriteString("--by takes these:\n\n")
	for _, name := range profile.GroupingNames() {
		fmt.Fprintf(&text, "  %-10s %s\n", name, profile.GroupingDoc(name))
	}
	fmt.Fprintf(&text, "  %-10s %s", ByCategory, "what it is for, by rules: parameters, activations and so on")
	return text.String()
}

// DefineRules adds the flags about rules that report and diff share.
func (s *QueryFlags) DefineRules(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.rules, "rules", "", "group by category, by these `RULES`: a file, or a preset of 'memtrace rules' "+
		"(default "+rulefile.Default+")")
	f.StringArrayVar(&s.Groups, "group", nil, "also group by rules, under a name: `NAME=RULES` (repeatable)")
	GroupFlags(cmd, GroupWhat, "rules", "group")
	CompleteFlag(cmd, "rules", completeRules)
	CompleteFlag(cmd, "group",
		func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			name, _, given := strings.Cut(typed, "=")
			if !given {
				return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			}
			var offers []string
			for _, preset := range rulefile.Presets() {
				offers = append(offers, name+"="+preset)
			}
			return offers, cobra.ShellCompDirectiveDefault
		})
}

// DefineEntries adds the flags about categories that only a report has.
func (s *QueryFlags) DefineEntries(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVarP(&s.Entries, "entries", "k", defaultEntries,
		"list the `COUNT` largest tags and sites below each category, also in JSON; 0: all, -1: none")
	f.StringVar(&s.sum, "expected-sum", "",
		"`SIZE` that the device counted; the rest is Untrackable")
	GroupFlags(cmd, GroupWhat, "expected-sum")
	GroupFlags(cmd, Layout, "entries")
	for _, name := range []string{"entries", "expected-sum"} {
		CompleteFlag(cmd, name, CompleteValues())
	}
}

// completeRules offers presets beside files.
func completeRules(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return rulefile.Presets(), cobra.ShellCompDirectiveDefault
}

// addRules checks the flags about rules, and reads the sets that they name.
func (s *QueryFlags) addRules(o *analyzer.Options) error {
	if s.rules != "" && !slices.Contains(o.Groupings, ByCategory) {
		o.Groupings = append(slices.Clip(o.Groupings), ByCategory)
	}
	if slices.Contains(o.Groupings, ByCategory) {
		name := s.rules
		if name == "" {
			name = rulefile.Default
		}
		set, err := rulefile.Open(name)
		if err != nil {
			return UsageErrorf("--rules: %w", err)
		}
		o.RuleSets = append(o.RuleSets, profile.RuleGrouping{Name: ByCategory, Rules: set})
	}
	if len(s.Groups) > maxGroups {
		return UsageErrorf("--group: %d groups; %d are allowed", len(s.Groups), maxGroups)
	}
	for _, text := range s.Groups {
		if err := addGroup(o, text); err != nil {
			return err
		}
	}
	switch {
	case s.Entries < 0:
	case s.Entries == 0:
		o.Entries = -1 // analyzer's word for all
	default:
		o.Entries = s.Entries
	}
	if s.sum == "" {
		return nil
	}
	var err error
	if o.Expected, err = rules.ParseSize(s.sum); err != nil {
		return UsageErrorf("--expected-sum: %w", err)
	}
	if o.Expected == 0 {
		return UsageErrorf("--expected-sum %s: name a size above 0", s.sum)
	}
	switch {
	case len(o.RuleSets) == 0:
		return UsageErrorf("--expected-sum requires --by category, --rules or --group")
	case s.focus != "" || s.ignore != "" || s.tag != "" || s.library != "":
		return UsageErrorf(
			"--expected-sum does not go with --focus, --ignore, --tag and --library, which leave memory out")
	}
	return nil
}

// addGroup reads one NAME=FILE|PRESET.
func addGroup(o *analyzer.Options, text string) error {
	name, source, given := strings.Cut(text, "=")
	if !given || name == "" || source == "" {
		return UsageErrorf("--group %s: write NAME=FILE or NAME=PRESET, such as layer=mxnet-layers", text)
	}
	if slices.Contains(groupingNames(), name) || slices.Contains(o.Groupings, name) {
		return UsageErrorf("--group %s: there is a grouping %q already; choose another name", text, name)
	}
	set, err := rulefile.Open(source)
	if err != nil {
		return UsageErrorf("--group %s: %w", name, err)
	}
	o.Groupings = append(slices.Clip(o.Groupings), name)
	o.RuleSets = append(o.RuleSets, profile.RuleGrouping{Name: name, Rules: set})
	return nil
}

// PageOptions are what the pages of html and serve are made with.
func (s *QueryFlags) PageOptions(blocks int) (analyzer.Options, error) {
	options, err := s.Options()
	if err != nil {
		return options, err
	}
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return options, err
	}
	options.Sites, options.Training, options.HistoryBlocks = true, true, blocks
	options.RuleSets = []profile.RuleGrouping{{Name: ByCategory, Rules: set}}
	return options, nil
}
