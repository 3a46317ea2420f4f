// Templates, lambdas, methods and an anonymous namespace, inlined into each other.
#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace shop {
namespace {

struct Item {
  std::string name;
  double price;
  double taxed(double rate) const { return price * (1 + rate); }
};

template <typename Range, typename Visit> __attribute__((always_inline)) inline double total(const Range &range, Visit visit) {
  double sum = 0;
  for (const auto &item : range)
    sum += visit(item);
  return sum;
}

}  // namespace

class Basket {
 public:
  void add(std::string name, double price) { items_.push_back({std::move(name), price}); }
  double sum(double rate) const;
  bool operator<(const Basket &other) const;

 private:
  std::vector<Item> items_;
};

__attribute__((noinline)) double Basket::sum(double rate) const {
  return total(items_, [rate](const Item &item) { return item.taxed(rate); });
}

__attribute__((noinline)) bool Basket::operator<(const Basket &other) const { return sum(0) < other.sum(0); }

template <int N, typename T> __attribute__((noinline)) T power(T base) {
  T result = 1;
  for (int i = 0; i < N; i++)
    result *= base;
  return result;
}

}  // namespace shop

int main(int argc, char **) {
  shop::Basket a, b;
  std::map<std::string, int> count;
  for (int i = 0; i < argc + 3; i++) {
    a.add("item " + std::to_string(i), i);
    b.add("thing", 2.0 * i);
    count["x" + std::to_string(i % 2)]++;
  }
  std::printf("%d %f %f %zu\n", a < b, shop::power<3>(a.sum(0.1)), shop::power<5>(2.5f), count.size());
  return 0;
}
