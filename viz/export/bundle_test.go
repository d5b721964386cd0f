package export

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// room holds modules, by path.
type room map[string]string

func (r room) read(path string) ([]byte, error) {
	text, ok := r[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func TestModulesBecomeOneScript(t *testing.T) {
	modules := room{
		"frame/page.js": "import { add, base as from } from \"../log/sum.js\";\n" +
			"import { say } from \"./say.js\";\n\n" +
			"const modules = await Promise.resolve([from, 2]);\nsay(add(...modules));\n",
		"frame/say.js": "import { base } from \"../log/sum.js\";\nconst own = base;\nexport async function later() " +
			"{}\nexport function* each() {}\nexport class Kept {}\n" +
			"export function say(n) {\n  heard.push(n + own);\n}\n",
		"log/sum.js": "heard.push(0); // once\nexport const base = 40;\nexport const add = (a, b) => a + b;\n",
	}
	text := require.Value(bundle("frame/page.js", modules.read))(t)
	vm := goja.New()
	require.NoError(t, vm.Set("heard", vm.NewArray()))
	_, err := vm.RunString(text)
	require.True(t, err == nil, "%v in\n%s", err, text)
	got := vm.Get("heard").String()
	assert.True(t, got == "0,82", "the script says %s, want 0,82", got)
}

func TestWhatCannotBeBundledIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		modules room
		want    string
	}{
		"a circle": {room{"a/a.js": "import { b } from \"./b.js\";\n", "a/b.js": "import { a } from " +
			"\"./a.js\";\nexport const b = 1;\n"}, "imports itself"},
		"another form":  {room{"a/a.js": "import * as b from \"./b.js\";\n"}, "import * as b"},
		"a default":     {room{"a/a.js": "export default 1;\n"}, "export default"},
		"a module less": {room{"a/a.js": "import { b } from \"./b.js\";\n"}, "not exist"},
	} {
		_, err := bundle("a/a.js", test.modules.read)
		assert.True(t, err != nil && (strings.Contains(err.Error(), test.want) || errors.Is(err, fs.ErrNotExist)),
			"%s: got %v, want %s", name, err, test.want)
	}
}
