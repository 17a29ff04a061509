"""Words for the readable names of the synthetic catalogue. Invented combinations; nothing here is a real product or person."""

# category -> (beginnings, endings); a title is one of each.
TITLE_PARTS: dict[str, tuple[list[str], list[str]]] = {
    "Travel": (
        ["Night train to", "Slow ferry to", "Long weekend in", "Walking tour of", "Sleeper coach to", "Winter in", "Five days in",
         "By bicycle to", "Back streets of", "Cheap rooms in", "Rail pass to", "Early flight to", "Sailing to", "Rooftops of"],
        ["Vienna", "Porto", "Trieste", "Naxos", "Bergen", "Kraków", "Lyon", "Riga", "Granada", "Ghent", "Tallinn", "Palermo",
         "Inverness", "Ljubljana", "Bologna", "Split"],
    ),
    "Cooking": (
        ["Cast-iron", "Weeknight", "Slow-cooked", "Grandmother's", "One-pot", "Charcoal", "Smoky", "Ten-minute", "Sunday", "Pickled",
         "Sourdough", "Roasted", "Coastal", "Late-summer"],
        ["aubergine stew", "lentil soup", "flatbreads", "tomato tart", "fish pie", "pepper sauce", "dumplings", "mushroom rice",
         "plum cake", "bean salad", "noodles", "potato gratin", "lemon chicken", "pumpkin curry", "onion soup", "apple strudel"],
    ),
    "Music": (
        ["Quiet", "Live", "Midnight", "Acoustic", "Lost", "Northern", "Rainy-day", "Brass", "Analogue", "Small-hours", "Desert",
         "Electric", "Winter", "Harbour"],
        ["piano sessions", "string quartets", "dub tapes", "folk songs", "synth sketches", "jazz trio", "choir recordings", "drum loops",
         "guitar studies", "radio dramas", "waltzes", "organ works", "field recordings", "ballads", "cello suites", "dance mixes"],
    ),
    "Books": (
        ["The lighthouse keeper's", "A short history of", "The cartographer's", "Letters about", "The last", "An atlas of", "Notes on",
         "The watchmaker's", "The year of", "In praise of", "The trouble with", "Seven tales of", "The clerk's", "A field guide to"],
        ["daughter", "tides", "silence", "bridges", "small towns", "winter light", "maps", "borrowed time", "salt", "forgotten rivers",
         "stairs", "northern birds", "machines", "paper", "moss", "strangers"],
    ),
    "Garden": (
        ["Copper", "Hardy", "Dwarf", "Climbing", "Wild", "Raised-bed", "Balcony", "Shade-loving", "Heirloom", "Terracotta", "Late-flowering",
         "Drought-proof", "Woodland", "Fragrant"],
        ["watering can", "tomato set", "rose", "seed mix", "herb planter", "fern", "lavender", "compost bin", "pruning shears", "bird bath",
         "bean trellis", "fig tree", "bulbs", "trowel", "clematis", "potting bench"],
    ),
    "Cycling": (
        ["Steel", "Carbon", "Waterproof", "Gravel", "Commuter's", "Touring", "Lightweight", "Reflective", "Folding", "Winter", "Leather",
         "Tubeless", "Dynamo", "City"],
        ["frame bag", "wheelset", "rain cape", "saddle", "handlebar", "lamp", "pannier", "gloves", "pump", "tyres", "toolkit", "jersey",
         "helmet", "mudguards", "bottle cage", "bell"],
    ),
    "Photography": (
        ["Vintage", "Compact", "Wide-angle", "Medium-format", "Underwater", "Pocket", "Studio", "Street", "Macro", "Instant", "Night",
         "Travel", "Large-format", "Infrared"],
        ["camera", "lens", "tripod", "film pack", "light meter", "camera strap", "photo workshop", "darkroom kit", "flash", "filter set",
         "photo book", "backdrop", "print set", "lens hood", "carry case", "slide viewer"],
    ),
    "Home": (
        ["Oak", "Linen", "Hand-thrown", "Wool", "Enamel", "Walnut", "Cotton", "Brass", "Rattan", "Glazed", "Recycled", "Felt", "Birch", "Paper"],
        ["reading lamp", "armchair", "bowl", "blanket", "coat rack", "bookshelf", "curtains", "wall clock", "side table", "teapot", "doormat",
         "mirror", "stool", "pendant light", "vase", "laundry basket"],
    ),
    "Games": (
        ["Castles of", "Merchants of", "Escape from", "The siege of", "Railways of", "Secrets of", "Gardens of", "Voyage to", "Legends of",
         "Pirates of", "Colonies of", "Dragons of", "Harvest in", "Duel at"],
        ["Aldermoor", "the salt coast", "Greywater", "the ninth moon", "Thornhill", "the glass desert", "Ravenport", "the deep north",
         "Oakhaven", "the iron valley", "Saint Orla", "the floating city", "Emberfell", "the silent sea", "Wintergate", "the clockwork isle"],
    ),
    "Films": (
        ["Return to", "The baker of", "Three nights in", "Nobody leaves", "A wedding in", "Goodbye,", "The ghost of", "Summer at", "The road past",
         "Strangers in", "Snow over", "The thieves of", "Waiting for", "The colour of"],
        ["Harbour Street", "Lindenhof", "Marseille", "the old mill", "Platform Nine", "Lake Orta", "the observatory", "Hotel Bristol",
         "the border", "Cinema Paloma", "the orchard", "Kilometre Zero", "Aunt Rosa", "the lido", "the archive", "Victoria Pier"],
    ),
}

CATEGORIES: list[str] = list(TITLE_PARTS)

FIRST_NAMES: list[str] = [
    "Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaja", "Leo", "Mira", "Nils", "Olga", "Pedro",
    "Quentin", "Rosa", "Samir", "Tove", "Uma", "Viktor", "Wanda", "Yusuf", "Zoe",
]
HOME_TOWNS: list[str] = [
    "Porto", "Ghent", "Riga", "Lyon", "Malmö", "Graz", "Turin", "Cork", "Brno", "Izmir", "Bilbao", "Gdańsk", "Basel", "Patras", "Leeds",
    "Tartu", "Bergen", "Bremen", "Nantes", "Zadar",
]
