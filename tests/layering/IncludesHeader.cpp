// Includes one header, named on the command line. The layering tests compile it with the include
// path of one layer and a header of another.

#include RONDO_HEADER

int main() {
  return 0;
}
