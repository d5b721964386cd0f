# symbol.awk prints the name and kind of the declaration that has a line (-v line=N), in Go, templ or JS (-v js=1).
# Kinds: field, method, call (a function that only calls name), own (no other file names it), name (all others).
function remark() { return /^[ \t]*(\/\/|\/?\*)/ }
BEGIN { words = "((export|default|async|func|function[*]?|type|var|const|let|class|templ|static|get|set) )" }
closure && /^ ? ?[^ })\]]/ { closure = 0; found = outer } # later lines belong to the enclosing function
/^(var|const|type) \($/ { block = 1 } /^type .* struct \{$/ { block = 2 } /^[)}]/ { block = 0 } { kind = "" }
$0 ~ "^" words "+[^(]" || block == 1 && /^\t[A-Za-z_]+( |,|$)/ {
  kind = js && !/^export/ ? "own" : /^(func|templ) [a-z]/ || js && /function[* ]|=>/ ? "call" : "name" }
NR == line && (js ? /^    this\.#?[A-Za-z]+ = / : block == 2 && /^\t[A-Za-z_]+[ ,]/) { kind = "field" }
/^(func|templ) \(/ || js && /^  (static |async |get |set )*#?[A-Za-z_]+\(.*\{$/ && !/^  (if|for|while|switch) ?\(/ {
  kind = /^  (static )?[gs]et / ? "field" : "method" }
js && /^  ((async )?function |const [A-Za-z_]+ = (async )?\(([^()]*$|.*=>))/ { kind = "own" }
kind && (NR <= line || above) { # a comment belongs to what follows it
  if (kind == "own" && /^  /) { closure = 1; outer = found }
  sub("^[ \t]*(this\\.)?" words "*(\\([^)]*\\) )?", "")
  found = match($0, /^[#A-Za-z_$][A-Za-z0-9_$]*/) ? substr($0, 1, RLENGTH) " " kind : found }
NR == line { above = remark() }
NR > line && !(above && remark()) { exit }
END { print found }
