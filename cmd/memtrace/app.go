package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/launch"
	"memtrace/internal/sanitize"
)

// app is what the verbs share.
type app struct {
	cli.Console
}

func newApp(stdin io.Reader, stdout, stderr *os.File) *app {
	return &app{cli.NewConsole(stdin, stdout, stderr)}
}

// execute runs one command line and returns the exit status.
func (a *app) execute(args []string) int {
	// A write to a closed pipe must come back as an error instead of ending this process: run still has a program to
	// wait for.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	root := rootCommand(a)
	root.SetArgs(args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(cli.NewFittingWriter(sanitize.NewWriter(a.Stderr, sanitize.Lines), cli.Columns(a.Stderr)))
	cmd, err := root.ExecuteC()
	return a.finish(cmd, err)
}

const rootLong = `memtrace shows where the GPU memory of a CUDA program goes, without changing or
rebuilding the program.

  memtrace run -- python3 train.py           # record
  memtrace report memtrace.python3.4711.bin  # what held the memory at the peak

To record without this command, preload the library:

  LD_PRELOAD=libmemtrace.so python3 train.py

  out of memory, or a leak     memtrace report FILE
  a part of a run              memtrace report --from 10s --to 20s FILE
  many ranks                   memtrace report DIR
  a process that runs already  memtrace attach PID
  what keeps its tensors       memtrace ctl PID referrers
  more than before             memtrace diff BASE NEW
  a limit in CI                memtrace check --max peak=10GiB FILE`

func init() { cobra.EnableCommandSorting = false } // commands of a group are listed by what is used most

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "memtrace",
		Short: "Where the GPU memory of a program goes",
		Long:  rootLong,
		Args: func(cmd *cobra.Command, args []string) error {
			return unknownVerb(cmd, args, "to record a program type: memtrace run -- "+strings.Join(args, " "))
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           versionLine(),
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { a.SetLevel() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(helpCommand(a))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return cli.UsageErrorf("%w", rewordNumberError(err))
	})
	root.Flags().BoolP("version", "V", false, "print the version and exit")
	root.PersistentFlags().CountVarP(&a.Verbose, "verbose", "v", "print more about what is done``; -vv: in detail")
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "print errors only")
	addGroup(root, "Record", runCommand(a), attachCommand(a), controlCommand(a), demoCommand(a))
	addGroup(root, "Look", reportCommand(a), htmlCommand(a), serveCommand(a), topCommand(a), diffCommand(a),
		checkCommand(a), plotCommand(a))
	addGroup(root, "Share and convert", exportCommand(a), importCommand(a), profileCommand(a), compactCommand(a),
		stripCommand(a),
		anonymizeCommand(a), embedCommand(a), dumpCommand(a))
	addGroup(root, "Inspect", infoCommand(a), rulesCommand(a))
	root.AddCommand(completionCommand(a), versionCommand(a), manCommand(a))
	cli.SetHelp(root, a.Stdout)
	return root
}

// addGroup adds commands that the help lists under a title.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, c := range commands {
		c.GroupID = title
		root.AddCommand(c)
	}
}

// helpCommand prints the help of a command by name, with what its --help leaves out.
func helpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show all the help of a command, more than its --help",
		ValidArgsFunction: func(cmd *cobra.Command, args []string,
			_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() && len(args) == 0 {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(cmd.Root(), args, "'memtrace --help' lists all commands")
			}
			cli.PrintManPage(found, a.Stdout, true)
			return nil
		},
	}
}

// rewordNumberError rewords strconv's error on a flag's value, without the function's name.
func rewordNumberError(err error) error {
	var number *strconv.NumError
	if !errors.As(err, &number) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), ": strconv.")
	if errors.Is(number, strconv.ErrRange) {
		return fmt.Errorf("%s: the number is too large", text)
	}
	return fmt.Errorf("%s: must be a number", text)
}

// unknownVerb returns the error for a first argument that is not a verb, with the nearest verbs, or else advice.
func unknownVerb(cmd *cobra.Command, args []string, advice string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = min(len(args[0])/2, 2) // of more letters any short verb is near
	near := cmd.SuggestionsFor(args[0])
	if len(near) == 0 {
		return cli.UsageErrorf("unknown command %q; %s", args[0], advice)
	}
	return cli.UsageErrorf("unknown command %q; did you mean %s?", args[0], strings.Join(near, " or "))
}

// The exit statuses of every verb but run.
const (
	exitOK      = 0
	exitFailure = 2
)

// finish prints err and returns its exit status. cmd is the verb that failed, or the root.
func (a *app) finish(cmd *cobra.Command, err error) int {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return exitOK // the reader of the output has closed it
	}
	var status *launch.StatusError
	if errors.As(err, &status) {
		if status.Err != nil {
			a.Complain(cmd.CommandPath(), status.Err)
		}
		return status.Status
	}
	a.Complain(cmd.CommandPath(), err)
	var mistake *cli.UsageError
	if errors.As(err, &mistake) {
		a.Print("Run '%s -h' for help and examples.", cmd.CommandPath())
	}
	return exitFailure
}
