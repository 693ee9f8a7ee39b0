import StateStore

/// Model-View: one root for each bounded context, values as models, a service behind it.
enum Shop {
    struct Product: Hashable, Sendable {
        let name: String
        let cents: Int
        var stock: Int
    }

    /// Provides the products for sale.
    struct Service: Sendable { let products: @Sendable () async -> [Product] }

    /// The root of the catalogue: products are changed only here.
    final class Catalogue: Sendable {
        let products = MonitoredState([String: Product](), key: "shop/products")
        private let service: Service

        init(service: Service) { self.service = service }

        func load() async {
            let loaded = await service.products()
            products.modify { products in
                for product in loaded { products[product.name] = product }
            }
        }

        /// Takes one piece from the stock in one step; nil if there is none.
        func take(_ name: String) -> Product? {
            products.modify { products in
                guard let product = products[name], product.stock > 0 else { return nil }
                products[name]?.stock -= 1
                return product
            }
        }
    }

    /// The root of the cart, which enforces its own rule: it contains only what the catalogue
    /// provided.
    final class Cart: Sendable {
        let lines = MonitoredState([String: (count: Int, cents: Int)](), key: "shop/cart")
        private let catalogue: Catalogue

        init(catalogue: Catalogue) { self.catalogue = catalogue }

        func add(_ name: String) -> Bool {
            guard let product = catalogue.take(name) else { return false }
            lines.modify { lines in
                lines[name, default: (0, product.cents)].count += 1
            }
            return true
        }

        var totalCents: Int { lines.value.values.reduce(0) { $0 + $1.count * $1.cents } }
    }
}

extension Example {
    static let aggregateRoot = Example(
        name: "aggregate-root",
        summary: "Model-View: a product catalogue and a cart, each a root that keeps its rules"
    ) { checks in
        let catalogue = Shop.Catalogue(
            service: Shop.Service {
                [
                    Shop.Product(name: "pen", cents: 150, stock: 100),
                    Shop.Product(name: "book", cents: 2_000, stock: 1),
                ]
            }
        )
        await catalogue.load()
        let cart = Shop.Cart(catalogue: catalogue)
        checks.expect(cart.add("book"), "the last book goes into the cart")
        checks.expect(!cart.add("book"), "there is no second book")
        checks.expect(!cart.add("car"), "there is no car")
        let taken = await withTaskGroup(of: Bool.self, returning: Int.self) { group in
            for _ in 0..<300 { group.addTask { cart.add("pen") } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        checks.expect(taken == 100, "of 300 buyers at once 100 get a pen")
        checks.expect(catalogue.products.value["pen"]?.stock == 0, "the stock is 0, not below")
        checks.expect(cart.totalCents == 17_000, "the cart costs 170.00")
        print("  total \(cart.totalCents)")
    }
}
