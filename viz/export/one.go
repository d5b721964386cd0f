package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"listwatch/internal/observe/recording"
)

var (
	sheet  = regexp.MustCompile(`<link rel="stylesheet" href="([^"]*)">`)
	script = regexp.MustCompile(`<script (?:defer )?src="([^"]*)"></script>`)
	icon   = regexp.MustCompile(`<link rel="icon"[^>]*>`)
)

// theRecording is the take's name on a page of one recording.
const theRecording = "recording"

// WriteOne writes one page that needs no other file: the stage of program, which runs nothing, with a recording in it.
// Secrets and credentials in the recording are masked, whatever program wrote it. WriteOne returns how many bytes the
// page has.
func WriteOne(name string, program http.Handler, rec *recording.Recording) (size int, err error) {
	var masked bytes.Buffer
	if err := recording.WriteAll(&masked, rec.Header, rec.Records); err != nil {
		return 0, err
	}
	s := &site{program: program, files: map[string][]byte{"static.js": staticScript}, alone: true}
	page := s.one(masked.Bytes())
	if s.err != nil {
		return 0, s.err
	}
	return len(page), os.WriteFile(name, page, 0o644)
}

// one returns the stage with everything in it that it would load. Its policy names what is written into it by hash.
func (s *site) one(file []byte) []byte {
	s.addPage("/")
	s.addData(leavesFile, s.leaves())
	s.addPacked("takes/"+theRecording, file)
	page := strings.Replace(string(s.files["index.html"]), `data-take="tour"`, `data-take="`+theRecording+`"`, 1)
	page = icon.ReplaceAllString(page, "")
	page = strings.Replace(page, `<a class="book">Book</a>`, "", 1)
	var styles, scripts []string
	page = sheet.ReplaceAllStringFunc(page, func(link string) string {
		text := s.files[sheet.FindStringSubmatch(link)[1]]
		styles = append(styles, hashOf(text))
		return "<style>" + string(text) + "</style>"
	})
	inline := func(text []byte) string {
		text = bytes.ReplaceAll(text, []byte("</script"), []byte(`<\/script`))
		scripts = append(scripts, hashOf(text))
		return "<script>" + string(text) + "</script>"
	}
	var last strings.Builder // deferred scripts run when the page is there
	page = script.ReplaceAllStringFunc(page, func(tag string) string {
		text := s.files[script.FindStringSubmatch(tag)[1]]
		if !strings.Contains(tag, "defer") {
			return inline(text)
		}
		last.WriteString(inline(text))
		if strings.Contains(tag, "static.js") {
			for _, name := range []string{leavesFile, "takes/" + theRecording} {
				last.WriteString(inline(s.files[name+".js"]))
			}
		}
		return ""
	})
	page = strings.Replace(page, "</body>", last.String()+"</body>", 1)
	own := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'",
		strings.Join(scripts, " "), strings.Join(styles, " "))
	return []byte(strings.Replace(page, policy, own, 1))
}

// hashOf returns a text as a Content-Security-Policy names it.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
