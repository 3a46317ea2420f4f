package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
)

// manCommand writes the man pages; make install calls it. SOURCE_DATE_EPOCH sets their date, so that a build can be
// repeated.
func manCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a folder",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageErrorf("name one folder for the man pages")
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder for the man pages: %w", err)
			}
			return cli.WriteManPages(cmd.Root(), args[0])
		},
	}
}
