// Command drawrooms draws the rooms of the source tree and their arrows, as they are: Go packages by what they import,
// folders of C by what they include. An arrow that follows from others is left out.
//
//go:generate go run . -o ../../docs/rooms.svg
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "rooms.svg", "file to write")
	root := flag.String("root", "../..", "root folder of the tree")
	flag.Parse()
	goRooms, err := goGraph(*root)
	if err != nil {
		log.Fatal(err)
	}
	cRooms, err := cGraph(*root)
	if err != nil {
		log.Fatal(err)
	}
	svg := draw(panel{"Go: who imports whom", goRooms}, panel{"C, in the library: who includes whom", cRooms})
	if err := os.WriteFile(*out, []byte(svg), 0o644); err != nil {
		log.Fatal(err)
	}
}
