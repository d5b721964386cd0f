package main

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
)

// openBrowser asks the desktop to open url. That it cannot is worth a line, not an error: the address is printed.
func openBrowser(url string, stderr io.Writer) {
	var command *exec.Cmd
	switch runtime.GOOS {
	case "windows":
		command = exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	case "darwin":
		command = exec.Command("open", url)
	default:
		command = exec.Command("xdg-open", url)
	}
	if err := command.Start(); err != nil {
		fmt.Fprintf(stderr, "cannot open a browser: %v\n", err)
		return
	}
	go command.Wait() // so that no zombie stays; it ends when the opener does, which is at once
}
