package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/require"
)

const (
	root        = "../../../.."
	filmStory   = "slow-watcher"
	picturesSum = "pictures.sum" // the hashes of the pictures' sources, in docs
)

// drawn lists patterns of the files that determine the README's pictures.
var drawn = []string{
	"viz/stage/*.js", "viz/stage/*.css", "viz/stage/*.templ", "viz/stage/layout.go", "viz/timeline/player.js",
	"viz/log/fold.js",
	"viz/frame/page.css", "viz/frame/access.css", "internal/check/compat/e2e/film_test.go",
	"internal/check/compat/e2e/moments_test.go", "internal/observe/takes/busy.lw.gz",
	"internal/observe/takes/story-" + filmStory + ".lw.gz",
}

// remarks matches comments and white space, which do not affect a picture.
var remarks = regexp.MustCompile(`(?m)(?:^|\s)\s*//.*$|/\*(?s:.*?)\*/|\s+`)

// sumOfPictures returns a line for each pattern in drawn, with a hash of its files without their comments and spaces.
func sumOfPictures(t *testing.T) string {
	t.Helper()
	var sum strings.Builder
	for _, pattern := range drawn {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.True(t, err == nil && len(names) > 0, "%s: %d files, %v", pattern, len(names), err)
		hash := sha256.New()
		for _, name := range names {
			content := require.Value(os.ReadFile(name))(t)
			if filepath.Ext(name) != ".gz" {
				content = remarks.ReplaceAll(content, nil)
			}
			hash.Write(content)
		}
		fmt.Fprintf(&sum, "%.8x  %s\n", hash.Sum(nil), pattern)
	}
	return sum.String()
}

// TestThePicturesAreOfThisPage fails if a file in drawn has changed since the README's pictures were made.
func TestThePicturesAreOfThisPage(t *testing.T) {
	made := require.Value(os.ReadFile(filepath.Join(root, "docs", picturesSum)))(t)
	require.Equal(t, sumOfPictures(t), string(made),
		"docs/film-*.png and docs/stage-*.png are stale: look at the page, then make screenshots")
}
